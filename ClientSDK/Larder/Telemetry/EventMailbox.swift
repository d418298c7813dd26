import Synchronization

/// The elements that one reader has yet to take. Safe from any task.
final class EventMailbox<Element: Sendable>: Sendable {
    private struct State {
        /// Taken ones are nil; `head` is the first that is not.
        var elements: [Element?] = []
        var head = 0
        var waiters: [(id: UInt64, continuation: CheckedContinuation<Element?, Never>)] = []
        var lastID: UInt64 = 0
        var dropped = 0
        var isFinished = false

        mutating func popFirst() -> Element? {
            guard head < elements.count else { return nil }
            let element = elements[head].take()
            head += 1
            if head == elements.count {
                elements.removeAll(keepingCapacity: true)
                head = 0
            } else if head > 64, head > elements.count / 2 {
                elements.removeFirst(head)
                head = 0
            }
            return element
        }
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: how many elements may wait; at least one.
    init(limit: Int) { self.limit = max(1, limit) }

    var droppedCount: Int { state.withLock { $0.dropped } }

    /// Puts an element in; gives back who waits for it, to be resumed outside of all locks.
    func post(_ element: Element) -> EventWakeup<Element>? {
        state.withLock { state in
            if state.isFinished { return nil }
            if !state.waiters.isEmpty {
                return EventWakeup(continuation: state.waiters.removeFirst().continuation, element: element)
            }
            if state.elements.count - state.head >= limit {
                _ = state.popFirst()
                state.dropped += 1
            }
            state.elements.append(element)
            return nil
        }
    }

    func takeAll() -> [Element] {
        state.withLock { state in
            defer {
                state.elements = []
                state.head = 0
            }
            return state.elements[state.head...].compactMap(\.self)
        }
    }

    /// Ends the sequence, once what is there has been taken.
    func finish() {
        let waiters = state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.continuation.resume(returning: nil) }
    }

    func next() async -> Element? {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> Element?? in
                    // A cancellation before this finds no waiter; one after it waits for the lock and finds this one.
                    if Task.isCancelled { return .some(nil) }
                    if let element = state.popFirst() { return element }
                    if state.isFinished { return .some(nil) }
                    state.waiters.append((id, continuation))
                    return nil
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
            }
            waiter?.continuation.resume(returning: nil)
        }
    }
}

/// Somebody who waited, and what for.
struct EventWakeup<Element: Sendable>: Sendable {
    let continuation: CheckedContinuation<Element?, Never>
    let element: Element

    func resume() { continuation.resume(returning: element) }
}

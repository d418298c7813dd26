import Synchronization

/// A bounded queue for one sequence; the oldest element is dropped if it is full. Safe from any task.
final class EventMailbox<Element: Sendable>: Sendable {
    private struct State {
        var elements = FIFO<Element>()
        var waiters: [(id: UInt64, continuation: CheckedContinuation<Element?, Never>)] = []
        var lastID: UInt64 = 0
        var dropped = 0
        var isFinished = false
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: the maximum number of waiting elements, at least 1.
    init(limit: Int) { self.limit = max(1, limit) }

    var droppedCount: Int { state.withLock { $0.dropped } }

    /// Adds an element, or gives it to a waiting task.
    func post(_ element: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            if state.isFinished { return nil }
            if !state.waiters.isEmpty { return state.waiters.removeFirst().continuation }
            if state.elements.count >= limit {
                _ = state.elements.popFirst()
                state.dropped += 1
            }
            state.elements.append(element)
            return nil
        }
        waiter?.resume(returning: element)
    }

    func takeAll() -> [Element] {
        state.withLock { state in
            var all: [Element] = []
            while let element = state.elements.popFirst() { all.append(element) }
            return all
        }
    }

    /// Ends the sequence after the waiting elements.
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
                    // A cancellation before this point finds no waiter; a later one finds this waiter under the lock.
                    if Task.isCancelled { return .some(nil) }
                    if let element = state.elements.popFirst() { return element }
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

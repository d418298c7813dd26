import LarderTime
import Synchronization

/// A bounded queue for one sequence; the oldest element is dropped if it is full. Safe from any task.
final class EventMailbox<Element: Sendable>: Sendable {
    private struct State {
        var elements = FIFO<Element>()
        var waiters: [Pending<Element?>] = []
        var dropped = 0
        var isFinished = false
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: the maximum number of waiting elements, at least 1.
    init(limit: Int) { self.limit = max(1, limit) }

    var droppedCount: Int { state.withLock { $0.dropped } }

    /// Adds an element, or gives it to a waiting task; returns the one that it drops for lack of room.
    @discardableResult func post(_ element: Element) -> Element? {
        while true {
            let (waiter, dropped) = queue(element)
            // A waiter that is being cancelled does not take it.
            if waiter?.finish(element) ?? true { return dropped }
        }
    }

    /// The waiter that gets an element; nil: the element was queued, perhaps in place of another one.
    private func queue(_ element: Element) -> (waiter: Pending<Element?>?, dropped: Element?) {
        state.withLock { state in
            if state.isFinished { return (nil, nil) }
            if !state.waiters.isEmpty { return (state.waiters.removeFirst(), nil) }
            var dropped: Element?
            if state.elements.count >= limit {
                dropped = state.elements.popFirst()
                state.dropped += 1
            }
            state.elements.append(element)
            return (nil, dropped)
        }
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
        for waiter in waiters { waiter.finish(nil) }
    }

    func next() async -> Element? {
        let waiter = Pending<Element?>()
        state.withLock { state in
            let element = Task.isCancelled ? nil : state.elements.popFirst()
            let isOver = element != nil || state.isFinished
            if isOver { waiter.finish(element) } else { state.waiters.append(waiter) }
        }
        return await waiter.value(ifCancelled: nil) { state.withLock { $0.waiters.removeAll { $0 === waiter } } }
    }
}

import Synchronization

/// Observers that are told of values in the order in which they came, one at a time, and under no lock.
final class OrderedObservers<Value: Sendable>: Sendable {
    private struct State {
        var observers: [UInt64: @Sendable (Value) -> Void] = [:]
        var lastID: UInt64 = 0
        var pending: [Value] = []
        var isTelling = false
    }

    private let state = Mutex(State())

    func add(_ body: @escaping @Sendable (Value) -> Void) -> EventRegistration {
        let id = state.withLock { state in
            state.lastID += 1
            state.observers[state.lastID] = body
            return state.lastID
        }
        return EventRegistration { [weak self] in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
        }
    }

    /// Tells of a value; where another thread is telling, that one goes on with this value.
    func tell(_ value: Value) {
        enqueue(value)
        drain()
    }

    /// Puts a value in its place: under the lock of whoever decides the order.
    func enqueue(_ value: Value) { state.withLock { $0.pending.append(value) } }

    /// Tells of what is in the queue: under no lock. Where another thread is telling, that one goes on.
    func drain() {
        let isMine = state.withLock { state in
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard isMine else { return }
        while true {
            let next = state.withLock { state -> (Value, [@Sendable (Value) -> Void])? in
                guard !state.pending.isEmpty else {
                    state.isTelling = false
                    return nil
                }
                return (state.pending.removeFirst(), Array(state.observers.values))
            }
            guard let next else { return }
            for observer in next.1 { observer(next.0) }
        }
    }
}

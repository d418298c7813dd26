package import LarderTime
import Synchronization

/// Calls observers with values in order, one at a time, without a lock.
package final class OrderedObservers<Value: Sendable>: Sendable {
    private struct State {
        var observers: [UInt64: @Sendable (Value) -> Void] = [:]
        var lastID: UInt64 = 0
        var pending: [Value] = []
        var isDelivering = false
    }

    private let state = Mutex(State())

    package init() {}

    package var isEmpty: Bool { state.withLock { $0.observers.isEmpty } }

    package func add(_ body: @escaping @Sendable (Value) -> Void) -> EventRegistration {
        let id = state.withLock { state in
            state.lastID += 1
            state.observers[state.lastID] = body
            return state.lastID
        }
        return EventRegistration { [weak self] in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
        }
    }

    /// Delivers a value; a thread that is already delivering takes it over.
    package func tell(_ value: Value) {
        enqueue(value)
        drain()
    }

    /// Enqueues a value. Called under the lock that decides the order.
    package func enqueue(_ value: Value) { state.withLock { $0.pending.append(value) } }

    /// Delivers queued values. Called without a lock. Has no effect while another thread delivers.
    package func drain() {
        let isMine = state.withLock { state in
            defer { state.isDelivering = true }
            return !state.isDelivering
        }
        guard isMine else { return }
        while true {
            let next = state.withLock { state -> (Value, [@Sendable (Value) -> Void])? in
                guard !state.pending.isEmpty else {
                    state.isDelivering = false
                    return nil
                }
                return (state.pending.removeFirst(), Array(state.observers.values))
            }
            guard let next else { return }
            for observer in next.1 { observer(next.0) }
        }
    }
}

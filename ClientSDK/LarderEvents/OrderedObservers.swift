package import LarderTime
import Synchronization

/// Calls observers with values in order, one at a time, without a lock.
package final class OrderedObservers<Value: Sendable>: Sendable {
    private struct State {
        var pending: [Value] = []
        var isDelivering = false
    }

    private let observers = Observers<Value>()
    private let state = Mutex(State())

    package init() {}

    package var isEmpty: Bool { observers.isEmpty }

    package func add(_ body: @escaping @Sendable (Value) -> Void) -> EventRegistration {
        EventRegistration(cancel: observers.add(body))
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
            let next: Value? = state.withLock { state in
                state.isDelivering = !state.pending.isEmpty
                return state.isDelivering ? state.pending.removeFirst() : nil
            }
            guard let next else { return }
            observers.tell(next)
        }
    }
}

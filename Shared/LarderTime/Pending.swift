import Synchronization

/// A value that is set once, and one task that waits for it, in either order.
///
/// Later values are ignored, so several producers may race.
package final class Pending<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case awaited(CheckedContinuation<Value, Never>)
        case full(Value)
        case taken
    }

    private let state = Mutex(State.empty)

    package init() {}

    /// Sets the value; false if it was set before.
    @discardableResult package func finish(_ value: Value) -> Bool {
        let (isFirst, waiting): (Bool, CheckedContinuation<Value, Never>?) = state.withLock { state in
            switch state {
            case .full, .taken: return (false, nil)
            case .empty:
                state = .full(value)
                return (true, nil)
            case .awaited(let continuation):
                state = .taken
                return (true, continuation)
            }
        }
        waiting?.resume(returning: value)
        return isFirst
    }

    /// Waits for the value. Must be called once.
    ///
    /// - Parameters:
    ///   - cancelled: the result if the waiting task is cancelled first.
    ///   - cleanUp: called in that case, on the thread that cancels.
    package func value(ifCancelled cancelled: Value, cleanUp: @Sendable () -> Void = {}) async -> Value {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let there: Value? = state.withLock { state in
                    guard case .full(let value) = state else {
                        state = .awaited(continuation)
                        return nil
                    }
                    state = .taken
                    return value
                }
                if let there { continuation.resume(returning: there) }
            }
        } onCancel: {
            if finish(cancelled) { cleanUp() }
        }
    }
}

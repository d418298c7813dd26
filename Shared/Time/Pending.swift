import Synchronization

/// A value that will be there once, and one task that waits for it; either may come first.
///
/// What arrives after the first value is dropped, so whoever gives values need not know whether somebody else was faster.
package final class Pending<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case awaited(CheckedContinuation<Value, Never>)
        case full(Value)
        case taken
    }

    private let state = Mutex(State.empty)

    package init() {}

    /// Gives the value; false where one was given before.
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

    /// Waits for the value. To be called once.
    ///
    /// - Parameters:
    ///   - cancelled: given instead when the waiting task is cancelled first.
    ///   - cleanUp: called then, on whatever thread cancels.
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

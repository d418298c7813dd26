import Synchronization

/// One wait that ends once, whether its end or its continuation comes first.
final class ManualWait: Sendable {
    private enum State {
        case new
        case waiting(CheckedContinuation<Bool, Never>)
        case ended(isAwake: Bool)
    }

    private let state = Mutex(State.new)

    /// Takes the continuation, and resumes it at once where the wait has ended already.
    func begin(_ continuation: CheckedContinuation<Bool, Never>) {
        let ended: Bool? = state.withLock { state in
            if case .ended(let isAwake) = state { return isAwake }
            state = .waiting(continuation)
            return nil
        }
        if let ended { continuation.resume(returning: ended) }
    }

    /// Ends the wait; only the first end counts.
    func end(isAwake: Bool) {
        let waiting: CheckedContinuation<Bool, Never>? = state.withLock { state in
            let before = state
            switch before {
            case .ended: return nil
            case .new:
                state = .ended(isAwake: isAwake)
                return nil
            case .waiting(let continuation):
                state = .ended(isAwake: isAwake)
                return continuation
            }
        }
        waiting?.resume(returning: isAwake)
    }
}

import LarderEvents
import LarderTime
import Synchronization

/// The delay of reads after failed requests. Not called under the node's lock.
extension Node {
    /// The error of a read that must not send a request yet, because the last one has failed; nil if it may be sent.
    func postponement(at now: Moment) -> LarderError? {
        let (known, error) = state.withLock { ($0.flight == nil ? $0.backOff : BackOff(), $0.error) }
        return core.postponement(known, error, at: now.uptime) { due in state.withLock { $0.backOff.retryAt = due } }
    }

    /// Repeats a request that has failed and that began before the network returned.
    func repeatAfterReturn() {
        let isWorthwhile = state.withLock { state in
            guard state.flight == nil, state.backOff.failures > 0, state.hasNetworkReturned else { return false }
            state.backOff.endNetworkDelay()
            return true
        }
        if isWorthwhile { revalidateObserved() }
    }

    /// When observers are owed a request; nil if they are not.
    var owedAt: MonotonicTime? { state.withLock { $0.owedAt } }

    /// Remembers that observers want a request as soon as one may be sent.
    func owe() {
        let replaced = state.withLock { state in
            state.owesRequest = true
            return core.scheduler.schedule(self, at: state.owedAt)
        }
        replaced?.cancel()
    }
}

extension Node.State {
    /// When observers are owed a request; nil if they are not.
    var owedAt: MonotonicTime? { owesRequest ? backOff.retryAt : nil }
}

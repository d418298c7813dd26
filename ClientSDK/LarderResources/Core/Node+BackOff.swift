import LarderEvents
import LarderTime
import Synchronization

/// The delay of reads after failed requests. Not called under the node's lock.
extension Node {
    /// The error of a read that must not send a request yet, because the last one has failed; nil if it may be sent.
    ///
    /// A read that may be sent takes a token of the cache's retry budget; without one it is postponed again.
    func postponement(at now: Moment) -> LarderError? {
        let policy = core.configuration.readRetry
        let (failures, isDue) = state.withLock { state -> (Int, Bool) in
            guard state.flight == nil, let due = state.retryAt else { return (0, false) }
            return (state.failures, due <= now.uptime)
        }
        guard failures > 0 else { return nil }
        if isDue, core.readRetryBudget.withLock({ $0.withdraw(at: now.uptime) }) {
            // One reader has the token; others join its request.
            state.withLock { $0.retryAt = nil }
            return nil
        }
        let wait = policy.backoffMaximum(attempt: failures) * core.configuration.random()
        return state.withLock { state in
            guard let due = state.retryAt, let error = state.error else { return nil }
            if isDue, due <= now.uptime { state.retryAt = now.uptime + max(.milliseconds(1), wait) }
            guard let due = state.retryAt, due > now.uptime else { return nil }
            return error.postponed(for: due - now.uptime)
        }
    }

    /// The times for the next read after a request has ended, to be set together with the number of failures.
    ///
    /// - Parameter held: until when the server has asked to wait before; a person's attempt that fails does not shorten that.
    func retryTimes(
        after error: LarderError?,
        failures: Int,
        held: MonotonicTime?
    ) -> (retryAt: MonotonicTime?, heldUntil: MonotonicTime?) {
        guard let error, !error.isLocal else { return (nil, nil) }
        let configuration = core.configuration
        let attempt = error.failures(after: failures)
        let wait = configuration.readRetry.backoffMaximum(attempt: attempt) * configuration.random()
        let now = configuration.monotonicClock.uptime
        let held = [held, error.retryAfter.map { now + $0 }].compactMap { $0 }.filter { $0 > now }.max()
        return ((held ?? now) + wait, held)
    }

    /// Ends the delay that the network has caused. What the server has asked for stays.
    func endBackOff() {
        state.withLock { state in state.retryAt = state.heldUntil }
    }

    /// Repeats a request that has failed and that began before the network returned.
    func repeatAfterReturn() {
        guard state.withLock({ $0.flight == nil && $0.failures > 0 && $0.hasNetworkReturned }) else { return }
        endBackOff()
        revalidateObserved()
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
    var owedAt: MonotonicTime? { owesRequest ? retryAt : nil }
}

extension LarderError {
    /// The number of failures in a row with this one. A request that was held until the host's pause ends has not failed again:
    /// otherwise two delays for one cause would double each other.
    func failures(after earlier: Int) -> Int { isHeldBack ? max(1, earlier) : earlier + 1 }

    /// Whether the request was not sent because the host has asked for a pause.
    var isHeldBack: Bool { isUnsent && retryAfter != nil }

    /// Whether the same request may succeed later by itself. One that lacks authorization needs a sign-in.
    var isTransient: Bool {
        if isLocal || code == .unauthorized || code == .gone { return false }
        guard let status, (400..<500).contains(status) else { return true }
        return status == 408 || status == 425 || status == 429
    }
}

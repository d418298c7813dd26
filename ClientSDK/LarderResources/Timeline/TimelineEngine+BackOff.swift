import LarderTime
import Synchronization

/// When the page of a place may be requested again after a failure.
struct PageDelay: Sendable {
    var failures = 0
    var retryAt: MonotonicTime?
    /// The part of `retryAt` that the server has asked for: it also holds when the network returns.
    var heldUntil: MonotonicTime?
}

/// The delay of pages after failed requests: that of reads (`Node+BackOff`), for each place.
extension TimelineEngine {
    /// The error of a request that must not be sent yet, because the last one has failed; nil if it may be sent.
    func postponement(of place: TimelinePlace) -> LarderError? {
        let configuration = core.configuration
        let now = configuration.monotonicClock.uptime
        let known = state.withLock { state -> (PageDelay, LarderError)? in
            guard state.flights[place] == nil, let delay = state.delays[place], let error = state.errors[place] else {
                return nil
            }
            return (delay, error)
        }
        guard let (delay, error) = known, var due = delay.retryAt else { return nil }
        if due <= now {
            if core.readRetryBudget.withLock({ $0.withdraw(at: now) }) {
                state.withLock { $0.delays[place]?.retryAt = nil }
                return nil
            }
            let wait = configuration.readRetry.backoffMaximum(attempt: delay.failures) * configuration.random()
            due = now + max(.milliseconds(1), wait)
            state.withLock { [due] state in state.delays[place]?.retryAt = due }
        }
        return error.postponed(for: due - now)
    }

    /// Delays the next request of a place. A request that the app has not allowed delays nothing.
    func delay(_ place: TimelinePlace, after error: LarderError) {
        guard core.configuration.mayUseNetwork() else { return }
        let earlier = state.withLock { $0.delays[place] }
        let failures = earlier?.failures ?? 0
        if failures > 0, error.isHeldBack { core.readRetryBudget.withLock { $0.refund() } }
        let times = node.retryTimes(after: error, failures: failures, held: earlier?.heldUntil)
        state.withLock { state in
            state.delays[place] = PageDelay(
                failures: error.failures(after: failures),
                retryAt: times.retryAt,
                heldUntil: times.heldUntil
            )
        }
    }

    /// Ends the delays that the network has caused. What the server has asked for stays.
    func endBackOff() {
        state.withLock { state in
            state.delays = state.delays.mapValues { delay in
                var delay = delay
                delay.retryAt = delay.heldUntil
                return delay
            }
        }
    }
}

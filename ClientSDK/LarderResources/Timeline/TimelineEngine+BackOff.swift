import LarderTime
import Synchronization

/// The delay of pages after failed requests, for each place.
extension TimelineEngine {
    /// The error of a request that must not be sent yet, because the last one has failed; nil if it may be sent.
    func postponement(of place: TimelinePlace) -> LarderError? {
        let (known, error) = state.withLock { state in
            (state.flights[place] == nil ? state.delays[place] ?? BackOff() : BackOff(), state.errors[place])
        }
        return core.postponement(known, error, at: core.configuration.monotonicClock.uptime) { due in
            state.withLock { $0.delays[place]?.retryAt = due }
        }
    }

    /// Delays the next request of a place. A request that the app has not allowed delays nothing.
    func delay(_ place: TimelinePlace, after error: LarderError) {
        let configuration = core.configuration
        guard configuration.mayUseNetwork() else { return }
        let (jitter, now) = (configuration.random(), configuration.monotonicClock.uptime)
        let wasRetry = state.withLock { state in
            defer {
                state.delays[place, default: BackOff()].fail(error, configuration.readRetry, jitter: jitter, at: now)
            }
            return state.delays[place] != nil
        }
        if wasRetry, error.isHeldBack { core.readRetryBudget.withLock { $0.refund() } }
    }

    /// Ends the delays that the network has caused.
    func endBackOff() {
        state.withLock { state in for place in state.delays.keys { state.delays[place]?.endNetworkDelay() } }
    }
}

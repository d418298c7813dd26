import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

/// The state of the request for a place of a timeline.
struct PlaceState {
    /// Nil: none is in flight.
    var flight: Flight?
    /// The error of the last request; nil if it succeeded.
    var error: LarderError?
    var backOff = BackOff()
}

/// The requests for the pages of a timeline besides the newest. Not called under the node's lock.
extension Node {
    /// Begins the request for a place, or joins the one in flight, and waits for its end.
    ///
    /// - Parameter isForced: whether it is begun although the last request has just failed.
    func load(
        _ place: TimelinePlace,
        isForced: Bool,
        _ fetch: @escaping @Sendable () async throws -> Void
    ) async throws(LarderError) {
        let now = core.now()
        if !isForced, let known = state.withLock({ $0.places[place] }), known.flight == nil {
            let error = core.postponement(known.backOff, known.error, at: now.uptime) { due in
                state.withLock { $0.places[place]?.backOff.retryAt = due }
            }
            if let error { throw error }
        }
        let (flight, isNew) = try state.withLock { state throws(LarderError) in
            guard !state.isClosed else { throw LarderError(.closed, "The cache was closed or erased.") }
            if let flight = state.places[place]?.flight, flight.hold() { return (flight, false) }
            let info = FlightInfo(
                stamp: core.stamps.next(),
                moment: now,
                timeout: nil,
                revalidates: true,
                returnCount: core.returnCount.load(ordering: .relaxed)
            )
            let flight = Flight(info) { [weak self] in self?.end($0, place, LarderError(CancellationError())) }
            state.places[place, default: PlaceState()].flight = flight
            return (flight, true)
        }
        defer { flight.leave() }
        if isNew {
            core.readRetryBudget.withLock { $0.deposit() }
            showAgain()
            flight.run(
                Task {
                    do {
                        try await fetch()
                        end(flight, place, nil)
                    } catch {
                        end(flight, place, LarderError(error))
                    }
                }
            )
        } else {
            core.configuration.onEvent(.merged(resource: key.name))
        }
        try await flight.wait()
    }

    private func end(_ flight: Flight, _ place: TimelinePlace, _ error: LarderError?) {
        let configuration = core.configuration
        let failure = error?.code == .cancelled ? nil : error
        if let failure { configuration.onEvent(.failed(resource: key.name, failure)) }
        let jitter = failure.map { $0.isLocal ? 0 : configuration.random() } ?? 0
        let now = configuration.monotonicClock.uptime
        let wasRetry = state.withLock { state in
            guard var known = state.places[place], known.flight === flight else { return false }
            let wasRetry = known.backOff.failures > 0
            (known.flight, known.error) = (nil, failure)
            if let failure {
                known.backOff.fail(failure, configuration.readRetry, jitter: jitter, at: now)
                if hasNetworkReturned(since: flight) { known.backOff.endNetworkDelay() }
            }
            state.places[place] = error == nil ? nil : known
            return wasRetry
        }
        if wasRetry, error?.isHeldBack ?? true { core.readRetryBudget.withLock { $0.refund() } }
        showAgain()
        flight.finish(error.map { .failure($0) } ?? .success(()))
    }

    /// Shows observers the content that they know, because something beside it has changed.
    func showAgain() { if hasContent { showAll() } }
}

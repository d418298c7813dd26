import LarderHTTP
import Synchronization

/// Equal requests share one exchange.
extension HTTPCache {
    /// Sends what a plan says, or waits for an exchange that is under way already.
    func exchangeShared(_ plan: Plan) async throws(TransportError) -> HTTPCacheResponse {
        let wishes = CacheControl(request: plan.request.fields)
        let isOwn = HTTPCacheValidation.own.contains { plan.request.fields.contains($0) }
        guard !wishes.noStore, !isOwn else { return try await exchange(plan) }
        // Who demands more than what is on its way gets an exchange of its own, which others may share from then on.
        let isDemanding = wishes.noCache != .none || wishes.maxAge != nil || wishes.minFresh != nil
        let key = FlightKey(plan.request, plan.url)
        let (flight, id, isJoined) = takeOff(key, isBackground: false, mayJoin: !isDemanding)
        if !isJoined { begin(flight, key, plan) }
        let outcome = await flight.outcome(for: id)
        guard isJoined, case .success(var response) = outcome else { return try outcome.get() }
        // What may not be stored may not be shared either: it was meant for one request.
        if CacheControl(response: response.fields).noStore { return try await exchange(plan) }
        count { statistics in
            statistics.collapsed += 1
            statistics.bytesSaved += response.body.count
        }
        if case .stale = response.source {
        } else {
            response.source = .collapsed
            response.explanation = "Another request for the same was under way (RFC 9111 §4). " + response.explanation
        }
        return response
    }

    /// Validates in the background, unless that is being done.
    func revalidate(_ plan: Plan) {
        let key = FlightKey(plan.request, plan.url)
        let isUnderWay = state.withLock { $0.flights[key] != nil }
        guard !isUnderWay else { return }
        let (flight, _, isJoined) = takeOff(key, isBackground: true, mayJoin: true)
        if !isJoined { begin(flight, key, plan) }
    }

    /// Waits until the validations that are under way in the background are over.
    public func finishBackgroundWork() async {
        while let flight = state.withLock({ $0.background.values.first }) { await flight.end() }
    }

    private func takeOff(
        _ key: FlightKey,
        isBackground: Bool,
        mayJoin: Bool
    ) -> (flight: HTTPCacheFlight, id: UInt64, isJoined: Bool) {
        state.withLock { state in
            if mayJoin, let flight = state.flights[key], let id = flight.join() { return (flight, id, true) }
            let flight = HTTPCacheFlight(isBackground: isBackground)
            state.flights[key] = flight
            if isBackground { state.background[ObjectIdentifier(flight)] = flight }
            // A new flight has not been given up.
            return (flight, flight.join() ?? 0, false)
        }
    }

    private func begin(_ flight: HTTPCacheFlight, _ key: FlightKey, _ plan: Plan) {
        flight.begin { [self] in
            let outcome: HTTPCacheFlight.Outcome
            do throws(TransportError) {
                outcome = .success(try await exchange(plan))
            } catch {
                outcome = .failure(error)
            }
            state.withLock { state in
                if state.flights[key] === flight { state.flights[key] = nil }
                state.background[ObjectIdentifier(flight)] = nil
            }
            return outcome
        }
    }
}

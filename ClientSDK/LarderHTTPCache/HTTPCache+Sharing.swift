import LarderHTTP
import LarderTransport
import Synchronization

/// Sharing of one exchange by equal requests.
extension HTTPCache {
    /// Sends a plan's request, or joins an exchange in flight.
    func exchangeShared(_ plan: Plan) async throws(TransportError) -> HTTPCache.Response {
        let wishes = CacheControl(request: plan.request.fields)
        let isOwn = HTTPCacheValidation.own.contains { plan.request.fields.contains($0) }
        guard !wishes.noStore, !isOwn else { return try await exchange(plan) }
        // A request with stricter conditions than the exchange in flight gets its own, which later requests join.
        let isDemanding = wishes.noCache != .none || wishes.maxAge != nil || wishes.minFresh != nil
        let key = FlightKey(plan.request, plan.url)
        let (flight, id, isJoined) = takeOff(key, isBackground: false, mayJoin: !isDemanding)
        if !isJoined { begin(flight, key, plan) }
        let outcome = await flight.outcome(for: id)
        guard isJoined, case .success(var response) = outcome else { return try outcome.get() }
        // A response that must not be stored is not shared.
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

    /// Validates in the background unless a validation is in flight.
    func revalidate(_ plan: Plan) {
        let key = FlightKey(plan.request, plan.url)
        let isUnderWay = state.withLock { $0.flights[key] != nil }
        guard !isUnderWay else { return }
        let (flight, _, isJoined) = takeOff(key, isBackground: true, mayJoin: true)
        if !isJoined { begin(flight, key, plan) }
    }

    /// Waits for background validations.
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
            // A new flight is not cancelled.
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

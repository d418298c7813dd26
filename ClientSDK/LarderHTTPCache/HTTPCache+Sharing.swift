import LarderEvents
import LarderHTTP
import LarderTransport
import Synchronization

/// Sharing of one exchange by equal requests.
extension HTTPCache {
    /// Sends a plan's request, or joins an exchange in flight.
    ///
    /// - Parameter ended: the number of exchanges that had ended before the plan was made: if there are more, and no equal request is in
    ///   flight, nothing is sent.
    /// - Returns: nil if nothing was sent.
    func exchangeShared(
        _ plan: Plan,
        unlessEndedSince ended: UInt64?
    ) async throws(TransportError) -> HTTPCache.Response? {
        let requestDirectives = CacheControl(request: plan.request.fields)
        let isOwn = HTTPCacheValidation.conditionFields.contains { plan.request.fields.contains($0) }
        guard !requestDirectives.noStore, !isOwn else {
            configuration.onEvent(plan.request, .miss)
            return try await exchange(plan)
        }
        // A request with stricter conditions than the exchange in flight gets its own, which later requests join.
        let isDemanding =
            requestDirectives.noCache != .none || requestDirectives.maxAge != nil || requestDirectives.minFresh != nil
        let key = FlightKey(plan)
        let isUserInitiated = plan.request.isUserInitiated
        let held = hold(
            key,
            isUserInitiated: isUserInitiated,
            isBackground: false,
            mayJoin: !isDemanding,
            unlessEndedSince: ended
        )
        guard let (flight, isJoined) = held else { return nil }
        configuration.onEvent(plan.request, .miss)
        if !isJoined { begin(flight, key, plan) }
        defer { flight.leave() }
        // Whether a stored response stands in for a failure is decided by its own directives, not by those of the request that it joined.
        let joining: HTTPCacheTicket? = isJoined ? issueTicket(plan.key) : nil
        defer { if let joining { takeBack(joining) } }
        // A gate that refuses a request in the background admits one of a person (`HostGate`), which is then sent by itself.
        let mayBeAdmitted = isJoined && isUserInitiated && !flight.info
        var response: HTTPCache.Response
        do throws(TransportError) {
            response = try await flight.wait()
        } catch {
            if mayBeAdmitted, error.code == .unreachable { return try await exchange(plan) }
            guard let joining else { throw error }
            return try await staleFallback(plan, for: error, joining)
        }
        guard let ticket = joining else { return response }
        if mayBeAdmitted, response.source == .stale(.transportFailed(.unreachable)) { return try await exchange(plan) }
        if response.source == .network, response.status.isServerFailure {
            let status = response.status
            let stored = await onDiskThread {
                self.staleFallback(plan, .serverFailed(status), "The server answered \(status.code).", ticket)
            }
            if let stored { return stored }
        }
        // A response that must not be stored is not shared, nor one that no other request may match.
        if CacheControl(response: response.fields).noStore || configuration.policy.varying(response.fields) == nil {
            return try await exchange(plan)
        }
        configuration.onEvent(plan.request, .merged)
        if case .stale = response.source {
        } else {
            response.source = .collapsed
            response.explanation = "Another request for the same was under way (RFC 9111 §4). " + response.explanation
        }
        return response
    }

    /// Validates in the background unless a validation is in flight.
    func revalidate(_ plan: Plan) {
        let key = FlightKey(plan)
        let isUnderWay = state.withLock { $0.flights[key] != nil }
        guard !isUnderWay else { return }
        // Nobody leaves a background validation, so it is never cancelled.
        let isUserInitiated = plan.request.isUserInitiated
        guard
            let (flight, isJoined) = hold(key, isUserInitiated: isUserInitiated, isBackground: true, mayJoin: true)
        else { return }
        if isJoined { flight.leave() } else { begin(flight, key, plan) }
    }

    /// Waits for background validations.
    public func finishBackgroundWork() async {
        while let flight = state.withLock({ $0.background.values.first }) { await flight.task?.value }
    }

    /// Returns the exchange in flight, or a new one, which the caller holds. Nil instead of a new one if others have ended since.
    private func hold(
        _ key: FlightKey,
        isUserInitiated: Bool,
        isBackground: Bool,
        mayJoin: Bool,
        unlessEndedSince ended: UInt64? = nil
    ) -> (flight: Flight, isJoined: Bool)? {
        state.withLock { state in
            if mayJoin, let flight = state.flights[key], flight.hold() { return (flight, true) }
            if let ended, state.endedFlights != ended { return nil }
            let flight = Flight(
                isUserInitiated,
                cancellation: { TransportError(.cancelled, "The caller does not wait any more.") }
            )
            state.flights[key] = flight
            if isBackground { state.background[ObjectIdentifier(flight)] = flight }
            return (flight, false)
        }
    }

    private func begin(_ flight: Flight, _ key: FlightKey, _ plan: Plan) {
        let task = Task { [self] in
            let outcome: Result<HTTPCache.Response, TransportError>
            do throws(TransportError) {
                outcome = .success(try await exchange(plan))
            } catch {
                outcome = .failure(error)
            }
            state.withLock { state in
                if state.flights[key] === flight { state.flights[key] = nil }
                state.endedFlights += 1
                state.background[ObjectIdentifier(flight)] = nil
            }
            flight.finish(outcome)
        }
        flight.run(task)
    }
}

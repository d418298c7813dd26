package import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Node {
    /// Joins the request in flight or starts one. The caller holds the flight and must leave it.
    ///
    /// - Parameters:
    ///   - since: the earliest start of a request that may be joined; otherwise another one is started.
    ///   - isForced: whether the caller asked for the network explicitly.
    ///   - needsOrigin: whether the answer must come from the origin: a request that a cache on the way may answer is not joined.
    ///   - cause: why the request is necessary (`RequestReason`); nil: the state of the stored value.
    ///   - revision: `State.revision` when the caller looked at the content; nil: the request is needed whatever has changed since.
    /// - Returns: nil if there is no request in flight and the content has changed: a request has just ended and may have returned the
    ///   wanted value.
    func join(
        _ options: ReadOptions,
        startedSince since: MonotonicTime? = nil,
        isForced: Bool = false,
        needsOrigin: Bool = false,
        cause: String? = nil,
        unlessChangedSince revision: UInt64? = nil
    ) throws(LarderError) -> Flight? {
        // Assembled before the lock is taken, because it may read from the disk.
        let content = content()
        let now = core.now()
        let needsOrigin = needsOrigin || isForced
        // Also if the stored value is known to be outdated, or the resource requires more than a cache on the way can guarantee.
        let revalidates =
            needsOrigin || content.isInvalidated || options.rule.level != .bestEffort
            || freshness(content, options, at: now) == .stale(.clockUncertain)
        let begun = try begin(at: now, within: options.timeout, revalidates, unlessChangedSince: revision) { flight in
            (flight.info.revalidates || !needsOrigin) && (since.map { flight.moment.uptime >= $0 } ?? true)
        }
        guard let (flight, isNew) = begun, isNew else { return begun?.flight }
        let context = FetchContext(
            validator: content.validator(options),
            mustRevalidate: revalidates,
            // Without the key of the list itself.
            stored: core.storedItems(
                content.facts.parts.count - 1,
                age: content.times?.age(at: now),
                isWholeList: content.completeness == .complete
            )
        )
        let reason = RequestReason(
            key.description,
            cause: cause ?? (isForced ? "a refresh" : freshness(content, options, at: now).description),
            policy: options.policy.name,
            isUserInitiated: isForced
        )
        flight.run(Task { await self.request(flight, context, reason) })
        return flight
    }

    /// Joins the request in flight for a place or begins one, which the caller must run. The caller holds the flight and must leave it.
    ///
    /// - Parameters:
    ///   - place: nil: the value, or the newest page of a timeline.
    ///   - timeout: how long it may take; nil: without a limit.
    ///   - revalidates: whether its answer comes from the origin.
    ///   - revision: as of `join`.
    ///   - joins: whether the request in flight is joined; otherwise another one is started.
    /// - Returns: nil if there is no request in flight and the content has changed.
    private func begin(
        _ place: TimelinePlace? = nil,
        at now: Moment,
        within timeout: Duration? = nil,
        _ revalidates: Bool,
        unlessChangedSince revision: UInt64? = nil,
        joining joins: (Flight) -> Bool
    ) throws(LarderError) -> (flight: Flight, isNew: Bool)? {
        let begun = try state.withLock { state throws(LarderError) -> (flight: Flight, isNew: Bool)? in
            guard !state.isClosed else { throw CacheCore.isClosedError }
            if let flight = state[place].flight, joins(flight), flight.hold() { return (flight, false) }
            if let revision, state.revision != revision { return nil }
            let info = FlightInfo(
                stamp: core.stamps.next(),
                moment: now,
                timeout: timeout,
                revalidates: revalidates,
                returnCount: core.returnCount.load(ordering: .relaxed)
            )
            let flight = Flight(info) { [weak self] in self?.abandon($0, place) }
            state[place].flights.append(flight)
            if place == nil { state.owesRequest = false }
            return (flight, true)
        }
        guard let begun else { return nil }
        if begun.isNew {
            core.readRetryBudget.withLock { $0.deposit() }
        } else {
            core.configuration.onEvent(.merged(resource: key.name))
        }
        return begun
    }

    /// Begins the request for a page of a timeline besides the newest, or joins the one in flight, and waits for its end.
    ///
    /// - Parameter isForced: whether it is begun although the last request has just failed.
    func load(
        _ place: TimelinePlace,
        isForced: Bool,
        _ fetch: @escaping @Sendable () async throws -> Void
    ) async throws(LarderError) {
        let now = core.now()
        if !isForced, let error = postponement(of: place, at: now) { throw error }
        guard let (flight, isNew) = try begin(place, at: now, true, joining: { _ in true }) else { return }
        defer { flight.leave() }
        if isNew {
            showAgain()
            flight.run(
                Task {
                    var failure: LarderError?
                    do { try await fetch() } catch { failure = LarderError(error) }
                    if flight.claim() { complete(flight, of: place, failure) }
                }
            )
        }
        try await flight.wait()
    }

    /// Sends the request and stores its reply.
    private func request(_ flight: Flight, _ context: FetchContext, _ reason: RequestReason) async {
        let resource = state.withLock { $0.resource }
        var context = context
        var begun = (stamp: flight.stamp, moment: flight.moment)
        func ask() async throws -> Fetched<Value> {
            try await send(reason, since: flight.moment.uptime, within: flight.info.timeout) { [context] in
                try await resource.fetch(context)
            }
        }
        do {
            var fetched = try await ask()
            if case .notModified = fetched.content, let validator = context.validator,
                await !core.reading({ self.isThere(validator, flight) })
            {
                // The confirmed value was evicted meanwhile: it is fetched completely, by a request that begins after what has changed since.
                context = FetchContext(mustRevalidate: context.mustRevalidate)
                begun = (core.stamps.next(), core.now())
                fetched = try await ask()
            }
            await core.changing { [fetched, context, begun] in
                self.finish(flight, resource, .success((fetched, context)), begun)
            }
        } catch {
            let error = LarderError(error)
            await core.changing { [begun] in self.finish(flight, resource, .failure(error), begun) }
        }
    }

    /// Sends a request, if the network may be used.
    ///
    /// - Parameters:
    ///   - start: when the time limit began, which covers all attempts.
    ///   - timeout: nil: no limit.
    func send<Reply: Sendable>(
        _ reason: RequestReason,
        since start: MonotonicTime,
        within timeout: Duration?,
        _ body: @escaping @Sendable () async throws -> Reply
    ) async throws -> Reply {
        let clock = core.configuration.monotonicClock
        let elapsed = clock.uptime - start
        do {
            return try await within(timeout.map { max($0 - elapsed, .zero) }, clock: clock, sleeper: clock) {
                [core, key] in
                try await reason.around {
                    // It depends on who asks.
                    guard core.configuration.mayUseNetwork() else {
                        throw LarderError(
                            .offline,
                            "The network may not be used at present: \"\(key)\" was not requested."
                        ).marked(isUnsent: true)
                    }
                    return try await body()
                }
            }
        } catch let error as TimeLimitExceeded {
            throw LarderError(
                .timedOut,
                "The request for \"\(key)\" was not answered within \(timeout ?? error.limit).",
                cause: error
            )
        }
    }

    /// Whether the confirmed value is still stored, or a later request has returned a newer one.
    private func isThere(_ validator: String, _ flight: Flight) -> Bool {
        let content = content()
        if content.facts.asked > flight.stamp { return true }
        // A list may have left memory, and with it everything but what was assembled of it.
        return content.facts.validator == validator && (entity != nil || core.query(key) != nil)
    }

    private func finish(
        _ flight: Flight,
        _ resource: Resource<Value>,
        _ result: Result<(Fetched<Value>, FetchContext), LarderError>,
        _ begun: (stamp: Stamp, moment: Moment)
    ) {
        guard flight.claim() else { return }
        let took = core.configuration.monotonicClock.uptime - flight.moment.uptime
        do {
            let (fetched, context) = try result.get()
            let update = try update(for: fetched, resource, context)
            let moment = begun.moment.before(fetched.age)
            do {
                // The changes of the commit are shown once, together with the end of the request. Later changes show themselves.
                state.withLock { $0.answers += 1 }
                defer { state.withLock { $0.answers -= 1 } }
                try core.commit(
                    update,
                    askedAt: begun.stamp.before(fetched.age),
                    moment: moment,
                    isTolerant: true
                )
                noteUnended()
            }
            switch fetched.content {
            case .value: core.configuration.onEvent(.fetched(resource: key.name, took))
            case .notModified:
                core.configuration.onEvent(.revalidated(resource: key.name, took, bytes: storedBytes))
            case .gone: break
            }
            if update.isMemoryOnly, !resource.isMemoryOnly {
                core.configuration.onEvent(.notStored(resource: key.name))
            }
            complete(flight, nil)
            if isOutdated(since: flight) {
                revalidateObserved()
                showAll()
            }
        } catch {
            complete(flight, LarderError(error))
        }
    }

    private func noteUnended() {
        // Nothing is assembled for nobody.
        guard isObserved else { return }
        let content = content()
        state.withLock { $0.unended = content.isInvalidated ? content.facts.invalid : .never }
    }

    /// Whether observers need another request: the content was invalidated, or the clock was set back, since the request began. An earlier
    /// invalidation that the answer has not ended is no reason to ask again: the next answer would not end it either.
    private func isOutdated(since flight: Flight) -> Bool {
        // Nothing is assembled for nobody.
        guard isObserved else { return false }
        if flight.stamp < core.invalidations.clock { return true }
        let content = content()
        return content.isInvalidated && content.facts.invalid > flight.stamp
    }

    var isObserved: Bool { state.withLock { !$0.observers.isEmpty } }

    /// The update for an answer.
    func update(
        for fetched: Fetched<Value>,
        _ resource: Resource<Value>,
        _ context: FetchContext
    ) throws(LarderError) -> CacheUpdate {
        var update = CacheUpdate(answering: storedKey, mayStore: fetched.mayStore || fetched.isGone)
        if case .notModified = fetched.content, context.validator == nil {
            throw LarderError(.unexpectedReply, "\"\(key)\" was reported as not modified, although nothing is stored.")
        }
        switch fetched.content {
        case .value(let value): update.steps += try resource.steps(storing: value, as: fetched)
        case .notModified:
            update.steps.append(.touch(storedKey, validator: context.validator, stated: fetched.stated))
            // Invalidated entities that came with a list are confirmed with it.
            update.steps += content().facts.stale.map { .touch(.entity($0), validator: nil, stated: nil) }
        case .gone: update.remove(storedKey)
        }
        return update
    }

    /// Handles a flight whose last holder has left.
    private func abandon(_ flight: Flight, _ place: TimelinePlace?) {
        let isObserved = state.withLock { state in
            guard state[place].end(flight) else { return false }
            state.revision += 1
            return !state.observers.isEmpty
        }
        if isObserved { showAll() }
    }

    /// Ends a request and shows observers the result.
    private func complete(_ flight: Flight, of place: TimelinePlace? = nil, _ error: LarderError?) {
        let configuration = core.configuration
        if let error, error.code != .cancelled { configuration.onEvent(.failed(resource: key.name, error)) }
        let jitter = error.map { $0.isLocal ? 0 : configuration.random() } ?? 0
        let now = configuration.monotonicClock.uptime
        // A request from before says nothing about the network of now: it is repeated at once.
        let hasReturned = flight.info.returnCount != core.returnCount.load(ordering: .relaxed)
        let isRepeated = error.map { $0.isTransient || hasReturned && $0.code == .offline } ?? false
        let wasRetry = state.withLock { $0[place].backOff.failures > 0 }
        if wasRetry, error?.isHeldBack ?? true { core.readRetryBudget.withLock { $0.refund() } }
        state.withLock { state in
            state.revision += 1
            let isLatest = state[place].end(flight)
            // The error of an overtaken request is not the current one.
            guard isLatest || error == nil else { return }
            if let error {
                state[place].backOff.fail(error, configuration.readRetry, jitter: jitter, at: now)
                if hasReturned { state[place].backOff.endNetworkDelay() }
            } else {
                state[place].answered = max(state[place].answered, flight.stamp)
                state[place].backOff = BackOff()
            }
            guard place == nil else { return }
            state.askedAt = flight.moment.uptime
            if error == nil { state.owesRequest = false }
            if isRepeated, state.observers.values.contains(where: { $0.options.policy.remote != .never }) {
                state.owesRequest = true
            }
        }
        flight.finish(error.map { .failure($0) } ?? .success(()))
        showAll(after: flight, error)
        guard place == nil, isRepeated, hasReturned, isObserved else { return }
        revalidateObserved()
        showAll()
    }

    /// Shows observers the content that they know, because something beside it has changed.
    func showAgain() { if hasContent { showAll() } }
}

/// The requests for a value, or for a page of a timeline, and what the last one has left.
struct Requests {
    /// Those in flight, in the order of their beginnings. A refresh does not join an earlier one.
    fileprivate(set) var flights: [Flight] = []
    /// The stamp of the latest one that was answered.
    fileprivate var answered = Stamp.never
    var backOff = BackOff()

    /// The one that is joined, which no answer has overtaken; nil if there is none.
    var flight: Flight? { flights.last.flatMap { $0.stamp > answered ? $0 : nil } }

    /// Ends a request.
    ///
    /// - Returns: whether it was the one that is joined.
    fileprivate mutating func end(_ flight: Flight) -> Bool {
        let isLatest = self.flight === flight
        flights.removeAll { $0 === flight }
        return isLatest
    }
}

extension Node.State {
    /// The requests for a place; nil: for the value.
    subscript(place: TimelinePlace?) -> Requests {
        get { place.map { places[$0] ?? Requests() } ?? own }
        set {
            guard let place else { return own = newValue }
            places[place] = newValue.flights.isEmpty && newValue.backOff.error == nil ? nil : newValue
        }
    }
}

typealias Flight = SingleFlight<FlightInfo, Void, LarderError>

/// What a node knows about its request.
struct FlightInfo: Sendable {
    /// Its place in the order of changes.
    let stamp: Stamp
    /// When it began. The answer is not older than that.
    let moment: Moment
    /// How long it may take; nil: without a limit.
    let timeout: Duration?
    /// Whether its answer comes from the origin and from no cache on the way (`FetchContext.mustRevalidate`).
    let revalidates: Bool
    /// `CacheCore.returnCount` when it began.
    let returnCount: UInt64
}

extension SingleFlight where Failure == LarderError {
    package convenience init(_ info: Info, onAbandoned: @escaping @Sendable (SingleFlight) -> Void = { _ in }) {
        self.init(info, cancellation: { LarderError(CancellationError()) }, onAbandoned: onAbandoned)
    }
}

extension SingleFlight where Info == FlightInfo {
    var stamp: Stamp { info.stamp }
    var moment: Moment { info.moment }

    /// How long a new holder waits at most; nil if the request ends earlier by itself or there is no limit.
    func limit(within timeout: Duration?, at now: Moment) -> Duration? {
        guard let timeout else { return nil }
        guard let own = info.timeout else { return timeout }
        return own <= timeout || moment.uptime + own <= now.uptime + timeout ? nil : timeout
    }
}

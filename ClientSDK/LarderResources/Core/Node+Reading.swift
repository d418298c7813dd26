import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Node {
    /// The settings of a read that passes this resource. Its tags hold for all readers from now on.
    ///
    /// - Parameter policy: the reader's policy; nil: the resource's, but a rule that requires validation never shows a stale value.
    func options(
        _ resource: Resource<Value>,
        _ policy: ReadPolicy? = nil,
        fields: Set<String> = []
    ) -> ReadOptions {
        let isUsual = resource.freshness == first.freshness
        let rule = isUsual ? first.rule : resource.freshness.rule(in: core.configuration.freshness)
        let usual = rule.level == .validated ? ReadPolicy(.fresh, .ifStale, fallback: .never) : resource.policy
        let isCached = resource.isCached?() ?? true
        note(tagsOf: resource)
        // Passed one by one, because a copy of the resource costs a fifth of a memory hit.
        return ReadOptions(
            policy: isCached ? policy ?? usual : Self.uncached(policy ?? usual),
            rule: rule,
            demands: resource.demands.ofEntity,
            timeout: resource.timeout,
            isOffDisk: resource.isMemoryOnly || !isCached,
            fields: fields
        )
    }

    /// The policy of a read whose resource is not cached at present.
    private static func uncached(_ policy: ReadPolicy) -> ReadPolicy {
        policy.remote == .never ? ReadPolicy(.never, .never, fallback: .never) : .networkOnly
    }

    /// Applies the tags of a reader.
    private func note(tagsOf resource: Resource<Value>) {
        guard !resource.tags.isEmpty, resource.tags != first.tags else { return }
        let isNew = state.withLock { state in
            guard !resource.tags.isSubset(of: state.tags) else { return false }
            state.tags.formUnion(resource.tags)
            return true
        }
        if isNew { contentChanged() }
    }

    /// Uses the fetch function of this reader from now on: it may know a newer session.
    func take(_ resource: Resource<Value>) {
        // The previous one is released outside of the lock, because it holds user code.
        _ = state.withLock { state in
            let old = state.resource
            state.resource = resource
            return old
        }
    }

    /// Keeps everything under the key off the disk from now on, if the reader demands it. A stored value moves to memory.
    func leaveDisk(_ options: ReadOptions) {
        guard options.isOffDisk, !isOffDisk.load(ordering: .relaxed) else { return }
        do {
            try core.keepOffDisk(storedKey)
            isOffDisk.store(true, ordering: .relaxed)
        } catch  where error.code == .closed {
            // The following read throws it.
        } catch {
            // The next read tries again; nothing is written until then.
            core.configuration.onEvent(.storageFailed(LarderError(error)))
        }
    }

    var storedKey: StoredKey { entity.map { .entity($0) } ?? .query(key) }

    /// The content in memory, if it satisfies the policy without a request. Neither waits nor reads the disk.
    func atHand(_ options: ReadOptions, at now: Moment) -> Content? {
        let policy = options.policy
        guard policy.remote != .always, policy.local != .never else { return nil }
        if options.isOffDisk, !isOffDisk.load(ordering: .relaxed) { return nil }
        guard let content = state.withLock({ $0.content }), content.judged != nil else { return nil }
        let freshness = freshness(content, options, at: now)
        if policy.remote == .ifStale { return freshness == .fresh ? content : nil }
        return permits(policy.local, freshness, isBare: options.isBare) ? content : nil
    }

    /// Reads once.
    func read(_ options: ReadOptions) async throws(LarderError) -> Snapshot<Value> {
        let start = core.configuration.monotonicClock.uptime
        let snapshot = try await repeating(options, withdraws: false) { options async throws(LarderError) in
            try await answer(options)
        }
        tellFirstContent(from: snapshot.source, since: start)
        return snapshot
    }

    /// - Parameter isAgain: whether the last answer was invalidated while it was asked for.
    private func answer(_ options: ReadOptions, isAgain: Bool = false) async throws(LarderError) -> Snapshot<Value> {
        let policy = options.policy
        let revision = state.withLock { $0.revision }
        let found = find(options)
        let content = found.content
        if found.isShown {
            // In the background. The flight is not left: it ends by its answer, its time limit, or the end of the cache.
            if found.asks { _ = try join(options) }
            return current(content, options, error: found.postponed, isFetching: found.asks)
        }
        guard policy.remote != .never else {
            guard content.value == nil else {
                throw LarderError(
                    .notValidated,
                    "\"\(key)\" has expired, and the server forbids to use it without validation. Allow a request, or read a snapshot, "
                        + "which says that it is stale."
                )
            }
            throw LarderError(.notCached, "\"\(key)\" is not stored, and the policy does not allow a request.")
        }
        if let error = found.postponed { throw error }
        let joined = try join(options, needsOrigin: policy.wantsOriginOnly, unlessChangedSince: revision)
        guard let flight = joined else { return try await answer(options, isAgain: isAgain) }
        let error: LarderError
        do {
            // Without a value to fall back to, the read waits for the request.
            let mayFallBack = permits(policy.fallback, found.freshness, isBare: options.isBare)
            try await wait(for: flight, options, fallbackDelay: mayFallBack ? policy.fallbackDelay : nil)
            let answered = self.content()
            guard answered.value != nil else {
                throw LarderError(.gone, "\"\(key)\" does not exist on the server.")
            }
            if options.rule.level == .validated, answered.isInvalidated {
                guard isAgain else { return try await answer(options, isAgain: true) }
                throw LarderError(
                    .notValidated,
                    "What the server has answered for \"\(key)\" is known to be outdated. Try again."
                )
            }
            return current(answered, options, source: .network)
        } catch let failure as LarderError {
            error = failure
        } catch let failure {
            error = LarderError(failure)
        }
        if error.code == .cancelled, Task.isCancelled { throw error }
        let present = self.content()
        let judged = self.freshness(present, options, at: core.now())
        guard error.code != .gone, permits(policy.fallback, judged, isBare: options.isBare) else { throw error }
        return current(present, options, error: error)
    }

    /// Waits for a request, no longer than the reader's own timeout, and leaves it. If `fallbackDelay` ends first, the request goes on.
    private func wait(
        for flight: Flight,
        _ options: ReadOptions,
        fallbackDelay: Duration? = nil
    ) async throws(LarderError) {
        let own = flight.limit(within: options.wait, at: core.now())
        let delay = fallbackDelay.flatMap { delay in own.map { delay < $0 } ?? true ? delay : nil }
        let clock = core.configuration.monotonicClock
        do {
            try await within(delay ?? own, clock: clock, sleeper: clock) { try await flight.wait() }
            flight.leave()
        } catch let error as TimeLimitExceeded {
            // After `fallbackDelay` the flight is not left: its answer is for later readers.
            if delay == nil { flight.leave() }
            throw LarderError(
                .timedOut,
                delay == nil
                    ? "\"\(key)\" did not come within \(options.timeout ?? error.limit). If another read waits for the request, it goes on."
                    : "The request for \"\(key)\" takes longer than \(error.limit) and goes on in the background.",
                cause: error
            )
        } catch {
            flight.leave()
            throw LarderError(error)
        }
    }

    /// Asks the network, whatever is stored. Joins only a request that began after `since`.
    func refresh(
        since: MonotonicTime,
        _ options: ReadOptions,
        cause: String? = nil
    ) async throws(LarderError) -> Snapshot<Value> {
        try checkUserRefresh()
        leaveDisk(options)
        if let flight = try join(options, startedSince: since, isForced: true, cause: cause) {
            try await wait(for: flight, options)
        }
        let content = content()
        guard content.value != nil else {
            throw LarderError(.gone, "\"\(key)\" does not exist on the server.")
        }
        return current(content, options, source: .network)
    }

    /// The value, if the server has confirmed it within the time; otherwise asks the server, at most twice.
    func requireValidated(within limit: Duration, _ options: ReadOptions) async throws(LarderError) -> Snapshot<Value> {
        leaveDisk(options)
        core.checkForeignCommits(at: core.now())
        let content = content()
        let now = core.now()
        let age = content.value == nil ? nil : content.times?.age(at: now)
        let isGood = !content.isInvalidated && !content.isPartial(options)
        if let age, age <= limit, isGood { return current(content, options) }
        // The answer of a request that is older than the limit would be too old.
        let oldest = MonotonicTime(
            nanoseconds: now.uptime.nanoseconds &- min(limit.nanosecondsSaturating, now.uptime.nanoseconds)
        )
        do {
            // Once more if the answer is outdated when it comes, or the value was not confirmed by it.
            for since in [isGood ? oldest : now.uptime, now.uptime] {
                _ = try await repeating(options, withdraws: true) { options async throws(LarderError) in
                    try await refresh(since: since, options, cause: "a gate")
                }
                let answered = self.content()
                if isConfirmed(answered, within: limit, orSince: now.uptime) {
                    return current(answered, options, source: .network)
                }
            }
        } catch {
            guard error.code != .cancelled, error.code != .closed, error.code != .gone else { throw error }
            core.configuration.onEvent(.gateRejected(resource: key.name))
            let known =
                age.map { "It was last confirmed \(Freshness.Notice.rounded($0)) ago." } ?? "It was never confirmed."
            throw LarderError(
                .notValidated,
                "\"\(key)\" must be confirmed within \(Freshness.Notice.rounded(limit)), and the server is not reachable. \(known) "
                    + "Reconnect and try again. (\(error.description))",
                cause: error,
                status: error.status,
                problem: error.problem
            )
        }
        core.configuration.onEvent(.gateRejected(resource: key.name))
        throw LarderError(
            .notValidated,
            "\"\(key)\" must be confirmed within \(Freshness.Notice.rounded(limit)), and what the server has answered is known to be "
                + "outdated. Try again."
        )
    }

    /// Whether content is not known to be outdated, and was confirmed within a time, or by a request that began at `start` or later.
    private func isConfirmed(_ content: Content, within limit: Duration, orSince start: MonotonicTime) -> Bool {
        guard !content.isInvalidated, let times = content.times, let age = times.age(at: core.now()) else {
            return false
        }
        return age <= limit || times.validatedUptime.map { $0 >= start } ?? false
    }

    /// The snapshot of content at present.
    ///
    /// - Parameter now: nil: the moment at which this is called.
    func current(
        _ content: Content,
        _ options: ReadOptions,
        source: CacheTier? = nil,
        error: LarderError? = nil,
        isFetching: Bool = false,
        at now: Moment? = nil
    ) -> Snapshot<Value> {
        let (revision, isBusy) = state.withLock { ($0.revision, $0.flight != nil) }
        return snapshot(
            content,
            options,
            source: source,
            error: error,
            isFetching: isFetching || (isBusy && source == nil),
            revision: revision,
            at: now ?? core.now()
        )
    }
}

/// The settings of one read or observer: from its parameters and its resource.
struct ReadOptions: Sendable {
    var policy: ReadPolicy
    var rule: Freshness.Rule
    /// The completeness that a fresh value needs.
    var demands: DiskEntity.Completeness
    /// How long the reader waits for a request; nil: no limit.
    var timeout: Duration?
    /// How much of `timeout` is left to a read that is repeated; nil: all of it. A request that it starts may take the whole `timeout`,
    /// because other readers may join it.
    var remaining: Duration?
    /// Whether the reader gets the value alone, without its freshness.
    var isBare = false
    /// Whether the value is kept off the disk.
    var isOffDisk = false
    /// The sensitive fields that the reader uses.
    var fields: Set<String>

    /// How long the reader still waits; nil: no limit.
    var wait: Duration? { remaining ?? timeout }

    /// The bound of bounded staleness; nil: none.
    var bound: Duration? {
        guard case .boundedStaleness(let bound) = rule.level, policy.remote != .never else { return nil }
        return bound
    }
}

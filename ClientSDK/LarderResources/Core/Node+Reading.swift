import LarderEvents
import LarderStorage
import LarderTime
import Synchronization

extension Node {
    /// The settings of a read that passes this resource.
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
        // Passed one by one, because a copy of the resource costs a fifth of a memory hit.
        return ReadOptions(
            resource.isCached?() == false ? Self.uncached(policy ?? usual) : policy ?? usual,
            rule,
            demands: resource.demands,
            timeout: resource.timeout,
            fields: fields
        )
    }

    /// Whether `admit` changes the disk.
    func mustLeaveDisk(_ resource: Resource<Value>) -> Bool {
        guard !isOffDisk.load(ordering: .relaxed) else { return false }
        return resource.isMemoryOnly || resource.isCached?() == false
    }

    /// The policy of a read whose resource is not cached at present.
    private static func uncached(_ policy: ReadPolicy) -> ReadPolicy {
        policy.remote == .never ? ReadPolicy(.never, .never, fallback: .never) : .networkOnly
    }

    /// Applies the settings of a reader that hold for all readers: tags and retention. Called before every read.
    func admit(_ resource: Resource<Value>) {
        if mustLeaveDisk(resource) {
            // Read before it is removed, so that a stored value is not lost.
            if resource.isMemoryOnly { _ = content() }
            keepOffDisk()
        }
        note(tagsOf: resource)
    }

    /// Applies the tags of a reader.
    func note(tagsOf resource: Resource<Value>) {
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

    /// Keeps the value in memory if it is there, removes it from the disk, and keeps everything under the key off the disk from now on.
    private func keepOffDisk() {
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

    /// The key of the value in the store.
    var storedKey: StoredKey { entity.map { .entity($0) } ?? .query(key) }

    /// The content in memory, if it satisfies the policy without a request. Neither waits nor reads the disk.
    func atHand(_ options: ReadOptions, at now: Moment) -> Content? {
        let policy = options.policy
        guard policy.remote != .always, policy.local != .never else { return nil }
        guard let content = state.withLock({ $0.content }), content.value != nil else { return nil }
        let freshness = freshness(content, options, at: now)
        if policy.remote == .ifStale { return freshness == .fresh ? content : nil }
        return permits(policy.local, content, freshness, at: now) ? content : nil
    }

    /// The value of `atHand`: freshness is computed first, then the value alone is copied.
    func valueAtHand(_ options: ReadOptions, at now: Moment) -> Value? {
        let policy = options.policy
        guard policy.remote != .always, policy.local != .never else { return nil }
        guard let assembledFreshness = assembledFreshness.withLock({ $0 }) else { return nil }
        let facts = facts(assembledFreshness.facts, held: assembledFreshness.held, options)
        let freshness = options.rule.judge(facts, fields: options.fields, at: now)
        guard
            policy.remote == .ifStale
                ? freshness == .fresh
                : permits(policy.local, assembledFreshness.facts.times, freshness, isBare: options.isBare, at: now)
        else { return nil }
        // Only the value whose freshness was computed is returned.
        return state.withLock { state in state.changes == assembledFreshness.changes ? state.content?.value : nil }
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

    private func answer(_ options: ReadOptions) async throws(LarderError) -> Snapshot<Value> {
        let policy = options.policy
        core.checkForeignCommits(at: core.now())
        let changes = state.withLock { $0.changes }
        let content = content()
        let now = core.now()
        let freshness = freshness(content, options, at: now)
        let asking = asking(options, content, freshness, at: now)
        if showsStored(asking, options, content, freshness, at: now) {
            core.configuration.onEvent(hit(content))
            switch asking {
            case .yes:
                fetchInBackground(options)
                return current(content, options, isFetching: true)
            case .postponed(let error): return current(content, options, error: error)
            case .no, .notAllowed: return current(content, options)
            }
        }
        core.configuration.onEvent(.miss(resource: key.name))
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
        if case .postponed(let error) = asking { throw error }
        let joined = try join(options, needsOrigin: policy.wantsOriginOnly, unlessChangedSince: changes)
        guard let flight = joined else { return try await answer(options) }
        let error: LarderError
        do {
            try await wait(for: flight, options, content, freshness, now)
            let answered = self.content()
            guard answered.value != nil else {
                throw LarderError(.gone, "\"\(key)\" does not exist on the server.")
            }
            return current(answered, options, source: .network)
        } catch let failure as LarderError {
            error = failure
        } catch let failure {
            error = LarderError(failure)
        }
        if error.code == .cancelled, Task.isCancelled { throw error }
        let present = self.content()
        let later = core.now()
        let judged = self.freshness(present, options, at: later)
        guard error.code != .gone, permits(policy.fallback, present, judged, isBare: options.isBare, at: later)
        else { throw error }
        return current(present, options, error: error)
    }

    /// Waits for a request and leaves it. If `fallbackDelay` ends first, the request goes on.
    private func wait(
        for flight: Flight,
        _ options: ReadOptions,
        _ content: Content,
        _ freshness: Freshness,
        _ now: Moment
    ) async throws(LarderError) {
        let mayFallBack = permits(options.policy.fallback, content, freshness, isBare: options.isBare, at: now)
        guard let fallbackDelay = options.policy.fallbackDelay, mayFallBack,
            flight.limit(within: options.wait, at: now).map({ fallbackDelay < $0 }) ?? true
        else { return try await wait(for: flight, options) }
        do {
            try await wait(for: flight, fallbackDelay)
            flight.leave()
        } catch let error as TimeLimitExceeded {
            // The flight is not left: its answer is for later readers.
            throw LarderError(
                .timedOut,
                "The request for \"\(key)\" takes longer than \(error.limit) and goes on in the background.",
                cause: error
            )
        } catch {
            flight.leave()
            throw LarderError(error)
        }
    }

    /// Waits for a request, no longer than the reader's own timeout, and leaves it.
    private func wait(for flight: Flight, _ options: ReadOptions) async throws(LarderError) {
        defer { flight.leave() }
        guard let limit = flight.limit(within: options.wait, at: core.now()) else { return try await flight.wait() }
        do {
            try await wait(for: flight, limit)
        } catch let error as TimeLimitExceeded {
            throw LarderError(
                .timedOut,
                "\"\(key)\" did not come within \(options.timeout ?? error.limit). If another read waits for the request, it goes on.",
                cause: error
            )
        } catch {
            throw LarderError(error)
        }
    }

    private func wait(for flight: Flight, _ limit: Duration) async throws {
        try await within(
            limit,
            clock: core.configuration.monotonicClock,
            sleeper: core.configuration.monotonicClock
        ) {
            try await flight.wait()
        }
    }

    /// Asks the network, whatever is stored. Joins only a request that began after `since`.
    func refresh(
        since: MonotonicTime,
        _ options: ReadOptions,
        cause: String? = nil
    ) async throws(LarderError) -> Snapshot<Value> {
        try checkUserRefresh()
        try await wait(for: try join(options, startedSince: since, isForced: true, cause: cause), options)
        let content = content()
        guard content.value != nil else {
            throw LarderError(.gone, "\"\(key)\" does not exist on the server.")
        }
        return current(content, options, source: .network)
    }

    /// The value, if the server has confirmed it within the time; otherwise asks the server.
    func requireValidated(within limit: Duration, _ options: ReadOptions) async throws(LarderError) -> Snapshot<Value> {
        core.checkForeignCommits(at: core.now())
        let content = content()
        let now = core.now()
        let age = content.value == nil ? nil : content.times?.age(at: now)
        let isGood = !content.isInvalidated && !content.isPartial(options)
        if let age, age <= limit, isGood { return current(content, options) }
        do {
            // The answer of a request that is older than the limit would be too old.
            let since = MonotonicTime(
                nanoseconds: now.uptime.nanoseconds &- min(limit.nanosecondsSaturating, now.uptime.nanoseconds)
            )
            return try await repeating(options, withdraws: true) { options async throws(LarderError) in
                try await refresh(since: isGood ? since : now.uptime, options, cause: "a gate")
            }
        } catch {
            guard error.code != .cancelled, error.code != .closed, error.code != .gone else { throw error }
            core.configuration.onEvent(.gateRejected(resource: key.name))
            let known = age.map { "It was last confirmed \(Self.seconds($0)) ago." } ?? "It was never confirmed."
            throw LarderError(
                .notValidated,
                "\"\(key)\" must be confirmed within \(Self.seconds(limit)), and the server is not reachable. \(known) "
                    + "Reconnect and try again. (\(error.description))",
                cause: error,
                status: error.status,
                problem: error.problem
            )
        }
    }

    private static func seconds(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        switch seconds {
        case ..<120: return "\(seconds) s"
        case ..<7_200: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3_600) h"
        default: return "\(seconds / 86_400) days"
        }
    }

    private func current(
        _ content: Content,
        _ options: ReadOptions,
        source: CacheTier? = nil,
        error: LarderError? = nil,
        isFetching: Bool = false
    ) -> Snapshot<Value> {
        let (revision, isBusy) = state.withLock { ($0.revision, $0.flight != nil) }
        return snapshot(
            content,
            options,
            source: source,
            error: error,
            isFetching: isFetching || (isBusy && source == nil),
            revision: revision,
            at: core.now()
        )
    }

    /// A snapshot of content in memory, for the fast path.
    func snapshot(atHand content: Content, _ options: ReadOptions, at now: Moment) -> Snapshot<Value> {
        let (revision, isBusy) = state.withLock { ($0.revision, $0.flight != nil) }
        return snapshot(content, options, isFetching: isBusy, revision: revision, at: now)
    }
}

import LarderEvents
import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// The freshness of a value for a reader, and its snapshot.
extension Node {
    /// The facts as a reader sees them, with the feeds if its rule uses them.
    func facts(_ known: FreshnessFacts, held: DiskEntity.Completeness = .complete, _ options: ReadOptions)
        -> FreshnessFacts
    {
        var facts = known
        if held < options.demands { facts.isPartial = true }
        if options.rule.criterion.usesFeeds { facts.feeds = core.invalidations.feeds }
        return facts
    }

    private func facts(_ content: Content, _ options: ReadOptions) -> FreshnessFacts? {
        content.judged.map { facts($0, held: content.facts.held, options) }
    }

    /// The rule with the current lifetime factor. A value that is fresh on a good network is fresh on a poor one.
    func presentRule(_ options: ReadOptions) -> Freshness.Rule {
        options.rule.stretched(by: options.rule.stretchClass.map { core.stretch(of: $0) } ?? 1)
    }

    func freshness(_ content: Content, _ options: ReadOptions, at now: Moment) -> Freshness {
        facts(content, options).map { presentRule(options).judge($0, fields: options.fields, at: now) } ?? .missing
    }

    /// The freshness of a page of a timeline. A request for the newest page renews no other.
    func freshness(_ page: FreshnessFacts, _ options: ReadOptions, at now: Moment) -> Freshness {
        presentRule(options).judge(facts(page, options), fields: options.fields, at: now)
    }

    /// The times of a value or a page, with its expiry by the rule of the reader.
    func times(_ known: FreshnessFacts, _ options: ReadOptions, at now: Moment) -> Freshness.Times {
        let facts = facts(known, options)
        var times = facts.times
        if let remaining = presentRule(options).remaining(facts, fields: options.fields, at: now) {
            times.expiresAt = now.wall + remaining
        }
        return times
    }

    /// The freshness of all of the content: that of the newest page, and if it is fresh, that of the first other page that is not.
    private func wholeFreshness(_ content: Content, _ options: ReadOptions, at now: Moment) -> Freshness {
        let newest = freshness(content, options, at: now)
        guard newest == .fresh else { return newest }
        return content.facts.pages.lazy.map { self.freshness($0, options, at: now) }.first { $0 != .fresh } ?? .fresh
    }

    /// Whether a policy allows a value to be shown.
    ///
    /// - Parameter isBare: whether the reader gets the value alone, without its freshness.
    func permits(_ local: ReadPolicy.Local, _ freshness: Freshness, isBare: Bool = false) -> Bool {
        // The server forbids it, and the reader could not see that it is stale.
        if isBare, freshness == .stale(.validationRequired) { return false }
        return switch local {
        case .never: false
        case .fresh: freshness == .fresh
        case .any: freshness != .missing
        }
    }

    func snapshot(
        _ content: Content,
        _ options: ReadOptions,
        shows: Bool = true,
        source: CacheTier? = nil,
        error: LarderError? = nil,
        isFetching: Bool,
        revision: UInt64,
        at now: Moment
    ) -> Snapshot<Value> {
        guard shows, let value = content.value, let facts = content.judged else {
            return Snapshot(isFetching: isFetching, refreshError: error, revision: revision)
        }
        return Snapshot(
            value: value,
            freshness: wholeFreshness(content, options, at: now),
            completeness: content.completeness,
            source: content.facts.pending > 0 ? .merged : source ?? (content.facts.isFromDisk ? .disk : .memory),
            times: times(facts, options, at: now),
            version: content.facts.version,
            validator: content.validator(options),
            isFetching: isFetching,
            refreshError: error,
            pendingChanges: content.facts.pending,
            revision: revision
        )
    }
}

extension Freshness.Criterion {
    /// Whether the criterion depends on change feeds.
    var usesFeeds: Bool {
        switch self {
        case .timeToLive, .source, .version: false
        case .feed: true
        case .all(let metrics), .any(let metrics): metrics.contains(where: \.usesFeeds)
        }
    }
}

/// How the current network behavior changes a read (`CacheConfiguration.networkBehavior`). Not called under the node's lock.
extension Node {
    /// What a read or an observer finds, and what its policy makes of it.
    struct Finding {
        let content: Content
        let freshness: Freshness
        /// Whether the content is shown without a request.
        var isShown: Bool
        /// Whether the network is asked.
        var asks = false
        /// The error of the last request, if the next one must wait.
        var postponed: LarderError?
    }

    /// Looks the content up for a reader, decides whether the network is asked, and reports the hit or miss.
    ///
    /// The policy decides. If requests are not allowed at present, the value that the policy falls back to is returned without an error;
    /// without one the network is asked nevertheless, so that there is an error to show.
    func find(_ options: ReadOptions) -> Finding {
        leaveDisk(options)
        core.checkForeignCommits(at: core.now())
        let content = content()
        let now = core.now()
        let freshness = freshness(content, options, at: now)
        let policy = options.policy
        func allows(_ local: ReadPolicy.Local) -> Bool { permits(local, freshness, isBare: options.isBare) }
        var found = Finding(content: content, freshness: freshness, isShown: allows(policy.local))
        if policy.remote == .always || policy.remote == .ifStale && freshness != .fresh {
            let behavior = core.configuration.networkBehavior()
            let isAllowed = policy.remote == .always ? behavior.allowsUserRefresh : behavior.allowsRefresh
            if isAllowed { found.postponed = postponement(at: now) }
            if !isAllowed || found.postponed != nil, allows(policy.fallback) { found.isShown = true }
            found.asks = found.postponed == nil && (isAllowed || !allows(policy.fallback))
        }
        let isFromDisk = content.facts.isFromDisk
        // Values in memory are not measured, because that would cost more than the read.
        let hit = CacheEvent.hit(
            resource: key.name,
            isFromDisk ? .disk : .memory,
            bytes: isFromDisk ? storedBytes : 0
        )
        core.configuration.onEvent(found.isShown ? hit : .miss(resource: key.name))
        return found
    }

    /// Whether stale values may be refreshed in the background.
    var refreshesByItself: Bool { core.configuration.networkBehavior().refreshesByItself }

    /// Whether bounded staleness is maintained at present; false without such observers.
    var keepsBound: Bool {
        state.withLock { $0.observers.values.contains { $0.options.bound != nil } } && refreshesByItself
    }

    /// - Throws: `.offline` if a user refresh cannot succeed. The shown value stays.
    func checkUserRefresh() throws(LarderError) {
        let behavior = core.configuration.networkBehavior()
        // Without a refresh nothing might find out for a minute that the network is back.
        guard !behavior.allowsUserRefresh, !behavior.isOfflineByExperience else { return }
        throw LarderError(
            .offline,
            "\"\(key)\" cannot be refreshed: the network is unavailable or restricted. The stored value is shown. Try again "
                + "when the network is available."
        )
    }

    /// Reports the time to first content.
    func tellFirstContent(from source: CacheTier?, since start: MonotonicTime) {
        let waited = core.configuration.monotonicClock.uptime - start
        core.configuration.onEvent(.firstContent(resource: key.name, source ?? .merged, waited))
    }

    /// The stored size of the parts that are in memory.
    var storedBytes: Int {
        if let entity { return core.entities.bytes(of: entity) }
        return state.withLock { $0.parts }.reduce(0) { sum, part in
            switch part {
            case .entity(let key): sum + core.entities.bytes(of: key)
            case .query(let key): sum + (core.queries.peek(key)?.query.details.count ?? 0)
            }
        }
    }
}

/// Lifetimes at the current network level (`CacheConfiguration.networkBehavior`).
extension CacheCore {
    /// The current factor of the lifetimes of a class, at least 1. May be called under a node's lock.
    func stretch(of name: Freshness.Class) -> Double {
        guard hasStretches.load(ordering: .relaxed) else { return 1 }
        return stretches.withLock { $0[name.rawValue] ?? 1 }
    }

    /// Copies the lifetime factors of the current behavior, so that they can be read under locks. Not called while a
    /// node is locked.
    ///
    /// - Returns: whether a factor has changed.
    func applyNetworkBehavior() -> Bool {
        let behavior = configuration.networkBehavior()
        var factors: [String: Double] = [:]
        for name in behavior.lifetimeFactors.keys {
            let factor = behavior.lifetimeFactor(class: name)
            if factor != 1 { factors[name] = factor }
        }
        return stretches.withLock { stretches in
            guard stretches != factors else { return false }
            stretches = factors
            hasStretches.store(!factors.isEmpty, ordering: .relaxed)
            return true
        }
    }
}

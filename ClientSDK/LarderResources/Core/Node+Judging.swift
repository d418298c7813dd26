import LarderEvents
import LarderStorage
import LarderTime

/// The freshness of a value for a reader, and its snapshot.
extension Node {
    /// The facts that freshness depends on, with known versions and feeds if the rule uses them.
    func facts(_ content: Content, _ times: Freshness.Times, _ options: ReadOptions) -> FreshnessFacts {
        facts(intrinsic(content, times), held: content.facts.held, options)
    }

    /// The facts, with known versions and feeds if the rule uses them.
    func facts(_ known: FreshnessFacts, held: DiskEntity.Completeness, _ options: ReadOptions) -> FreshnessFacts {
        var facts = known
        if held < options.demands { facts.isPartial = true }
        guard options.rule.criterion.needsContext else { return facts }
        if let entity {
            (facts.knownVersion, facts.versionsForgottenAt) = core.invalidations.knownVersion(entity)
        }
        facts.feeds = core.invalidations.feeds
        return facts
    }

    /// The current lifetime factor: 1 on a good network, and for a rule without a class.
    private func stretch(_ options: ReadOptions) -> Double {
        options.rule.stretchClass.map { core.stretch(of: $0) } ?? 1
    }

    /// The rule with the current lifetime factor. A value that is fresh on a good network is fresh on a poor one.
    func presentRule(_ options: ReadOptions) -> Freshness.Rule { options.rule.stretched(by: stretch(options)) }

    func freshness(_ content: Content, _ options: ReadOptions, at now: Moment) -> Freshness {
        guard content.value != nil, let times = content.times else { return .missing }
        return presentRule(options).judge(facts(content, times, options), fields: options.fields, at: now)
    }

    /// When a value expires by the rule of the reader.
    private func expiry(_ facts: FreshnessFacts, _ options: ReadOptions, at now: Moment) -> WallTime {
        let rule = presentRule(options)
        if let remaining = rule.remaining(facts, fields: options.fields, at: now) { return now.wall + remaining }
        return rule.expiry(of: facts.times) ?? facts.times.expiresAt
    }

    /// The times of a page of a timeline, with its expiry by the rule of the reader.
    func times(_ page: PageState, _ options: ReadOptions, at now: Moment) -> Freshness.Times {
        var times = page.times
        times.expiresAt = expiry(facts(page.facts, held: .complete, options), options, at: now)
        return times
    }

    /// The freshness of a page of a timeline. A request for the newest page renews no other.
    func freshness(_ page: PageState, _ options: ReadOptions, at now: Moment) -> Freshness {
        presentRule(options).judge(facts(page.facts, held: .complete, options), fields: options.fields, at: now)
    }

    /// The freshness of all of the content: that of the newest page, and if it is fresh, that of the first other page that is not.
    private func wholeFreshness(
        _ content: Content,
        _ facts: FreshnessFacts,
        _ options: ReadOptions,
        at now: Moment
    ) -> Freshness {
        let newest = presentRule(options).judge(facts, fields: options.fields, at: now)
        guard newest == .fresh else { return newest }
        return content.facts.pages.lazy.map { self.freshness($0, options, at: now) }.first { $0 != .fresh } ?? .fresh
    }

    /// Whether a policy allows the content to be shown.
    ///
    /// - Parameter isBare: whether the reader gets the value alone, without its freshness.
    func permits(
        _ local: ReadPolicy.Local,
        _ content: Content,
        _ freshness: Freshness,
        isBare: Bool = false,
        at now: Moment
    ) -> Bool {
        content.value != nil && permits(local, content.times, freshness, isBare: isBare, at: now)
    }

    /// Whether a policy allows a value with these times to be shown.
    func permits(
        _ local: ReadPolicy.Local,
        _ times: Freshness.Times?,
        _ freshness: Freshness,
        isBare: Bool = false,
        at now: Moment
    ) -> Bool {
        // The server forbids it, and the reader could not see that it is stale.
        if isBare, freshness == .stale(.validationRequired) { return false }
        switch local {
        case .never: return false
        case .fresh: return freshness == .fresh
        case .any(within: nil): return true
        case .any(within: let limit?):
            if freshness == .fresh { return true }
            guard let age = times?.age(at: now) else { return false }
            return age <= limit
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
        guard shows, let value = content.value, var times = content.times else {
            return Snapshot(
                value: nil,
                freshness: .missing,
                completeness: .unknown,
                source: nil,
                times: nil,
                version: nil,
                validator: nil,
                isFetching: isFetching,
                refreshError: error,
                pendingChanges: 0,
                revision: revision
            )
        }
        let facts = facts(content, times, options)
        times.expiresAt = expiry(facts, options, at: now)
        return Snapshot(
            value: value,
            freshness: wholeFreshness(content, facts, options, at: now),
            completeness: content.completeness,
            source: content.pending > 0 ? .merged : source ?? (content.isFromDisk ? .disk : .memory),
            times: times,
            version: content.facts.version,
            validator: content.validator(options),
            isFetching: isFetching,
            refreshError: error,
            pendingChanges: content.pending,
            revision: revision
        )
    }
}

extension Freshness.Criterion {
    /// Whether the criterion depends on more than times.
    var needsContext: Bool {
        switch self {
        case .timeToLive, .source: false
        case .version, .feed: true
        case .all(let metrics), .any(let metrics): metrics.contains(where: \.needsContext)
        }
    }
}

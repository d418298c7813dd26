import LarderEvents
import LarderStorage
import LarderTime

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
        guard content.value != nil, let known = content.judged else { return nil }
        return facts(known, held: content.facts.held, options)
    }

    /// The current lifetime factor: 1 on a good network, and for a rule without a class.
    private func stretch(_ options: ReadOptions) -> Double {
        options.rule.stretchClass.map { core.stretch(of: $0) } ?? 1
    }

    /// The rule with the current lifetime factor. A value that is fresh on a good network is fresh on a poor one.
    func presentRule(_ options: ReadOptions) -> Freshness.Rule { options.rule.stretched(by: stretch(options)) }

    func freshness(_ content: Content, _ options: ReadOptions, at now: Moment) -> Freshness {
        facts(content, options).map { presentRule(options).judge($0, fields: options.fields, at: now) } ?? .missing
    }

    /// The freshness of a page of a timeline. A request for the newest page renews no other.
    func freshness(_ page: FreshnessFacts, _ options: ReadOptions, at now: Moment) -> Freshness {
        presentRule(options).judge(facts(page, options), fields: options.fields, at: now)
    }

    /// The times of a value or a page, with its expiry by the rule of the reader.
    func times(_ known: FreshnessFacts, _ options: ReadOptions, at now: Moment) -> Freshness.Times {
        let (facts, rule) = (facts(known, options), presentRule(options))
        var times = facts.times
        if let remaining = rule.remaining(facts, fields: options.fields, at: now) {
            times.expiresAt = now.wall + remaining
        } else if let expiry = rule.expiry(of: times) {
            times.expiresAt = expiry
        }
        return times
    }

    /// The freshness of all of the content: that of the newest page, and if it is fresh, that of the first other page that is not.
    private func wholeFreshness(_ content: Content, _ options: ReadOptions, at now: Moment) -> Freshness {
        let newest = freshness(content, options, at: now)
        guard newest == .fresh else { return newest }
        return content.facts.pages.lazy.map { self.freshness($0, options, at: now) }.first { $0 != .fresh } ?? .fresh
    }

    /// Whether a policy allows a value with these times to be shown.
    ///
    /// - Parameter isBare: whether the reader gets the value alone, without its freshness.
    func permits(
        _ local: ReadPolicy.Local,
        _ times: Freshness.Times?,
        _ freshness: Freshness,
        isBare: Bool = false,
        at now: Moment
    ) -> Bool {
        if freshness == .missing { return false }
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
        guard shows, let value = content.value, let facts = content.judged else {
            return Snapshot(isFetching: isFetching, refreshError: error, revision: revision)
        }
        return Snapshot(
            value: value,
            freshness: wholeFreshness(content, options, at: now),
            completeness: content.completeness,
            source: content.pending > 0 ? .merged : source ?? (content.isFromDisk ? .disk : .memory),
            times: times(facts, options, at: now),
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
    /// Whether the criterion depends on change feeds.
    var usesFeeds: Bool {
        switch self {
        case .timeToLive, .source, .version: false
        case .feed: true
        case .all(let metrics), .any(let metrics): metrics.contains(where: \.usesFeeds)
        }
    }
}

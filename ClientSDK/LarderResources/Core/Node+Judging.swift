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
        source: Snapshot<Value>.Source? = nil,
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
                activity: isFetching ? .fetching : .idle,
                refreshError: error,
                pendingChanges: 0,
                revision: revision
            )
        }
        let facts = facts(content, times, options)
        let rule = presentRule(options)
        if let remaining = rule.remaining(facts, fields: options.fields, at: now) {
            times.expiresAt = now.wall + remaining
        } else if let expiry = rule.expiry(of: times) {
            times.expiresAt = expiry
        }
        return Snapshot(
            value: value,
            freshness: rule.judge(facts, fields: options.fields, at: now),
            completeness: content.completeness,
            source: content.pending > 0 ? .merged : source ?? (content.isFromDisk ? .disk : .memory),
            times: times,
            version: content.facts.version,
            validator: content.validator(options),
            activity: isFetching ? .fetching : .idle,
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

import LarderTime
import Synchronization

/// One resource under one key, as far as somebody wants it: its value put together, its request, and its observers.
///
/// Safe from any thread. What is stored belongs to the tiers; a node can go at any time that nobody holds it.
final class Node<Value: Sendable & Equatable>: AnyNode {
    typealias Content = NodeContent<Value>

    struct State {
        /// Nil until it is put together, and after something has changed.
        var content: Content?
        /// Grows with every change to what it is made of.
        var changes: UInt64 = 0
        /// What the content was put together from: what has not changed since is not looked at again. Nil: all of it is.
        var recall: EntityRecall?
        /// What of that has changed since.
        var changed: [EntityKey] = []
        /// Grows with every commit that changes what it is made of, before anybody is told.
        var notes: UInt64 = 0
        var revision: UInt64 = 0
        var flight: Flight?
        /// Why the last request failed; nil after one that did not.
        var error: LarderError?
        var failures = 0
        /// Whether the network has returned since the request began that is under way: if it fails, that says little.
        var hasNetworkReturned = false
        /// How many answers are being stored: what they change is shown when they have been.
        var answers = 0
        var observers: [UInt64: Observer<Value>] = [:]
        var lastObserver: UInt64 = 0
        /// The parts that the index of dependencies knows.
        var parts: Set<StoredKey> = []
        var isClosed = false
        /// As the last reader gave it: it may know a newer session.
        var fetch: @Sendable (FetchContext) async throws -> Fetched<Value>
    }

    let key: QueryKey
    let core: CacheCore
    let resource: Resource<Value>
    let rule: FreshnessRule
    let needsContext: Bool
    let state: Mutex<State>
    /// Nil where there is no value at hand. Locked alone, or while the state is.
    let standing = Mutex<Standing?>(nil)
    private let name: NodeRegistry.Name

    init(_ resource: Resource<Value>, _ core: CacheCore) {
        key = resource.key
        name = NodeRegistry.Name(key: resource.key, type: ObjectIdentifier(Value.self))
        self.core = core
        self.resource = resource
        state = Mutex(State(fetch: resource.fetch))
        rule = resource.freshness.rule(in: core.configuration.freshness)
        needsContext = rule.metric.needsContext
    }

    deinit {
        core.dependencies.remove(ObjectIdentifier(self), state.withLock { $0.parts })
        core.nodes.forget(name)
    }

    // MARK: Content

    /// What the tiers have. Reads from the disk where that is needed.
    func content() -> Content {
        while true {
            if let known = state.withLock({ $0.content }) { return known }
            let (changes, notes, recall, changed) = state.withLock { state in
                (state.changes, state.notes, state.recall, state.changed)
            }
            let count = core.commitCount
            let (new, found) = assemble(recall, changed)
            let isKnown = state.withLock { state in
                guard state.content == nil, state.changes == changes, state.notes == notes else { return false }
                core.dependencies.replace(state.parts, by: new.facts.parts, for: self)
                state.parts = new.facts.parts
                return true
            }
            // What was committed before the index knew could not be told.
            guard isKnown, core.commitCount == count else { continue }
            let isSet = state.withLock { state in
                guard state.changes == changes, state.notes == notes, state.parts == new.facts.parts else {
                    return false
                }
                state.content = new.inMemory
                state.recall = found
                state.changed = []
                let judged = new.value == nil ? nil : new.times
                standing.withLock { standing in
                    standing = judged.map { Standing(facts: intrinsic(new, $0), changes: changes) }
                }
                return true
            }
            if isSet { return new }
        }
    }

    private func assemble(_ recall: EntityRecall?, _ changed: [EntityKey]) -> (Content, EntityRecall?) {
        switch resource.shape {
        case .single(let key, let codec, _): (single(key, codec), nil)
        case .normalized(let normalizer): normalized(normalizer, recall, changed)
        }
    }

    private func single(_ key: EntityKey, _ codec: Codec<Value>) -> Content {
        let found = core.entity(key, { try codec.decode($0) })
        let (visible, pending) = core.entities.visible(found?.stored.value, key)
        let value = visible as? Value
        var facts = ContentFacts(parts: [.entity(key)])
        facts.pending = pending
        guard let stored = found?.stored else {
            // Made here, and not known to the server yet.
            if value != nil {
                facts.times = ValueTimes(
                    fetchedAt: core.now().wall,
                    validatedAt: ValueTimes.never,
                    expiresAt: ValueTimes.never,
                    epoch: 0
                )
            }
            return Content(value, facts)
        }
        facts.times = stored.times
        facts.version = stored.version
        facts.completeness = Completeness(stored.completeness)
        facts.isPartial = stored.completeness < resource.demands.step
        // What a list brought has no validator of its own, and what is partial must not be confirmed.
        facts.validator = facts.isPartial ? nil : stored.validator
        facts.isInvalidated =
            stored.isInvalidated
            || core.invalidations.covers(
                resource.tags.union([InvalidationTable.tag(entityType: key.type)]),
                validatedAt: stored.times.validatedAt,
                order: stored.order
            )
        facts.order = stored.order
        facts.isFromDisk = found?.isFromDisk ?? false
        return Content(value, facts)
    }

    /// - Parameters:
    ///   - recall: what it was put together from before, where the index is still the same.
    ///   - changed: the entities that are others since.
    private func normalized(
        _ normalizer: Normalizer<Value>,
        _ recall: EntityRecall?,
        _ changed: [EntityKey]
    ) -> (Content, EntityRecall?) {
        let rows: [EntityKey: DiskEntity]?
        var basis: EntityRecall
        if let recall {
            rows = nil
            basis = recall
        } else {
            guard let found = core.query(key) else { return (Content(nil, ContentFacts(parts: [.query(key)])), nil) }
            rows = found.rows
            basis = EntityRecall(found.stored, key, core.entities.visible(found.stored.query.ids, key))
        }
        let stored = basis.stored
        var facts = ContentFacts(parts: basis.parts)
        let core = core
        let epoch = core.now().epoch
        var isFromDisk = rows != nil
        let count = core.commitCount
        // To put the tag together for each of a list's entities would take longer than all the rest.
        let hasMarks = core.invalidations.hasMarks
        func judged(_ stored: StoredEntity, _ key: EntityKey) -> StoredEntity {
            hasMarks ? Self.judged(stored, key, core) : stored
        }
        var lookup = EntityLookup(keys: basis.keys, overlays: core.entities) { key, decode in
            if let known = core.entities[key] { return judged(known, key) }
            guard let row = rows?[key], let value = try? decode(row.payload) else {
                // A row that does not decode is reported and removed by the read that follows.
                guard let found = core.entity(key, decode) else { return nil }
                isFromDisk = isFromDisk || found.isFromDisk
                return judged(found.stored, key)
            }
            let entity = StoredEntity(
                row,
                value: value,
                epoch: epoch,
                isDistrusted: core.isDistrusted,
                sight: stored.sight
            )
            core.fill(entity, key, ifNothingSince: count)
            return judged(entity, key)
        }
        lookup.earlier = basis.found
        lookup.changed = changed
        let value: Value
        do {
            value = try normalizer.join(stored.query.details, &lookup)
        } catch {
            // Another version of the application wrote it: it is as good as not there.
            core.configuration.onEvent(.storageFailed(LarderError(error)))
            return (Content(nil, facts), nil)
        }
        basis.found = lookup.found
        facts.times = stored.times
        facts.pending = lookup.pending
        facts.isPartial = lookup.missing > 0
        facts.completeness =
            lookup.missing > 0 ? .gapped(lookup.missing) : stored.query.isComplete ? .complete : .partial
        // «Not modified» confirms what came with the list, and nothing that has changed since.
        let isConfirmable = lookup.stale.allSatisfy { $0.fetchedAt <= stored.times.fetchedAt }
        facts.validator = facts.isPartial || !isConfirmable ? nil : stored.query.entityTag
        facts.stale = lookup.stale.map(\.key)
        facts.isInvalidated =
            stored.query.isInvalidated || !lookup.stale.isEmpty
            || core.invalidations.covers(
                resource.tags,
                validatedAt: stored.times.validatedAt,
                order: stored.order
            )
        facts.order = stored.order
        facts.isFromDisk = isFromDisk
        return (Content(value, facts), basis)
    }

    private static func judged(_ stored: StoredEntity, _ key: EntityKey, _ core: CacheCore) -> StoredEntity {
        var stored = stored
        if core.invalidations.covers(
            [InvalidationTable.tag(entityType: key.type)],
            validatedAt: stored.times.validatedAt,
            order: stored.order
        ) {
            stored.isInvalidated = true
        }
        return stored
    }

    // MARK: Judging

    func facts(_ content: Content, _ times: ValueTimes) -> FreshnessFacts {
        inContext(intrinsic(content, times)).stretched(by: stretch)
    }

    /// By what times to live are multiplied at present: 1 on a good network, and where the rule is of no class.
    var stretch: Double { rule.family.map { core.stretch(of: $0) } ?? 1 }

    /// The rule as it is at present. What it calls fresh on a good network it calls fresh on a bad one.
    var presentRule: FreshnessRule { rule.stretched(by: stretch) }

    private func intrinsic(_ content: Content, _ times: ValueTimes) -> FreshnessFacts {
        var facts = FreshnessFacts(times: times)
        facts.version = content.facts.version
        facts.isInvalidated = content.isInvalidated
        facts.isPartial = content.isPartial
        return facts
    }

    /// With what others know of it at present, where the rule looks at that.
    func inContext(_ known: FreshnessFacts) -> FreshnessFacts {
        guard needsContext else { return known }
        var facts = known
        if case .single(let key, _, _) = resource.shape { facts.knownVersion = core.invalidations.knownVersion(key) }
        facts.feeds = core.invalidations.feeds
        return facts
    }

    func freshness(_ content: Content, fields: Set<String>, at now: Moment) -> Freshness {
        guard content.value != nil, let times = content.times else { return .missing }
        return presentRule.judge(facts(content, times), fields: fields, at: now)
    }

    /// Whether a policy allows to show it.
    func permits(_ local: ReadPolicy.Local, _ content: Content, _ freshness: Freshness, at now: Moment) -> Bool {
        content.value != nil && permits(local, content.times, freshness, at: now)
    }

    /// Whether a policy allows to show a value that was confirmed at these times.
    func permits(_ local: ReadPolicy.Local, _ times: ValueTimes?, _ freshness: Freshness, at now: Moment) -> Bool {
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
        fields: Set<String> = [],
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
        let facts = facts(content, times)
        let rule = presentRule
        if let remaining = rule.remaining(facts, fields: fields, at: now) {
            times.expiresAt = now.wall + remaining
        } else if let lifetime = rule.lifetime {
            times.expiresAt = min(times.expiresAt, times.validatedAt + lifetime)
        }
        return Snapshot(
            value: value,
            freshness: rule.judge(facts, fields: fields, at: now),
            completeness: content.completeness,
            source: content.pending > 0 ? .merged : source ?? (content.isFromDisk ? .disk : .memory),
            times: times,
            version: content.facts.version,
            validator: content.validator,
            activity: isFetching ? .fetching : .idle,
            refreshError: error,
            pendingChanges: content.pending,
            revision: revision
        )
    }
}

extension FreshnessMetric {
    /// Whether it looks at more than times.
    var needsContext: Bool {
        switch self {
        case .timeToLive: false
        case .version, .feed: true
        case .all(let metrics), .any(let metrics): metrics.contains(where: \.needsContext)
        }
    }
}

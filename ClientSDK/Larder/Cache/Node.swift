import LarderTime
import Synchronization

/// One resource under one key, as far as somebody wants it: its value put together, its request, and its observers.
///
/// Safe from any thread. What is stored belongs to the tiers; a node can go at any time that nobody holds it.
final class Node<Value: Sendable & Equatable>: AnyNode {
    /// The value as the tiers have it, and what is known of it.
    struct Content: Sendable {
        var value: Value?
        var times: ValueTimes?
        var version: Int64?
        var validator: String?
        var completeness = Completeness.unknown
        var isPartial = false
        var isInvalidated = false
        /// The entities that make it stale.
        var stale: [EntityKey] = []
        var pending = 0
        /// The order of the request that brought or confirmed it.
        var order: UInt64 = 0
        var isFromDisk = false
        var parts: Set<StoredKey> = []
    }

    struct State {
        /// Nil until it is put together, and after something has changed.
        var content: Content?
        /// Grows with every change to what it is made of.
        var changes: UInt64 = 0
        var revision: UInt64 = 0
        var flight: Flight?
        /// Why the last request failed; nil after one that did not.
        var error: LarderError?
        var failures = 0
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
            let (known, changes) = state.withLock { ($0.content, $0.changes) }
            if let known { return known }
            let count = core.commitCount
            let new = assemble()
            let old = state.withLock { state in
                defer { state.parts = new.parts }
                return state.parts
            }
            core.dependencies.replace(old, by: new.parts, for: self)
            // What was committed before the index knew could not be told.
            guard core.commitCount == count else { continue }
            let isSet = state.withLock { state in
                guard state.changes == changes else { return false }
                state.content = new
                // Whoever reads it next finds it in memory.
                state.content?.isFromDisk = false
                let judged = new.value == nil ? nil : new.times
                standing.withLock { standing in
                    standing = judged.map { Standing(facts: intrinsic(new, $0), changes: changes) }
                }
                return true
            }
            if isSet { return new }
        }
    }

    private func assemble() -> Content {
        switch resource.shape {
        case .single(let key, let codec, _): single(key, codec)
        case .normalized(let normalizer): normalized(normalizer)
        }
    }

    private func single(_ key: EntityKey, _ codec: Codec<Value>) -> Content {
        let found = core.entity(key, { try codec.decode($0) })
        let (value, pending) = core.entities.visible(found?.stored.value, key)
        var content = Content(parts: [.entity(key)])
        content.pending = pending
        content.value = value as? Value
        guard let stored = found?.stored else {
            // Made here, and not known to the server yet.
            if content.value != nil {
                content.times = ValueTimes(
                    fetchedAt: core.now().wall,
                    validatedAt: ValueTimes.never,
                    expiresAt: ValueTimes.never,
                    epoch: 0
                )
            }
            return content
        }
        content.times = stored.times
        content.version = stored.version
        content.completeness = Completeness(stored.completeness)
        content.isPartial = stored.completeness < resource.demands.step
        // What a list brought has no validator of its own, and what is partial must not be confirmed.
        content.validator = content.isPartial ? nil : stored.validator
        content.isInvalidated =
            stored.isInvalidated
            || core.invalidations.covers(
                resource.tags.union([InvalidationTable.tag(entityType: key.type)]),
                validatedAt: stored.times.validatedAt,
                order: stored.order
            )
        content.order = stored.order
        content.isFromDisk = found?.isFromDisk ?? false
        return content
    }

    private func normalized(_ normalizer: Normalizer<Value>) -> Content {
        var content = Content(parts: [.query(key)])
        guard let (stored, rows) = core.query(key) else { return content }
        let ids = core.entities.visible(stored.query.ids, key)
        content.parts.reserveCapacity(ids.count + 1)
        for key in ids { content.parts.insert(.entity(key)) }
        let core = core
        let epoch = core.now().epoch
        var isFromDisk = rows != nil
        let count = core.commitCount
        // To put the tag together for each of a list's entities would take longer than all the rest.
        let hasMarks = core.invalidations.hasMarks
        func judged(_ stored: StoredEntity, _ key: EntityKey) -> StoredEntity {
            hasMarks ? Self.judged(stored, key, core) : stored
        }
        var lookup = EntityLookup(keys: ids, overlays: core.entities) { key, decode in
            if let known = core.entities[key] { return judged(known, key) }
            guard let row = rows?[key], let value = try? decode(row.payload) else {
                // A row that does not decode is reported and removed by the read that follows.
                guard let found = core.entity(key, decode) else { return nil }
                isFromDisk = isFromDisk || found.isFromDisk
                return judged(found.stored, key)
            }
            let entity = StoredEntity(row, value: value, epoch: epoch, isDistrusted: core.isDistrusted)
            core.fill(entity, key, ifNothingSince: count)
            return judged(entity, key)
        }
        do {
            content.value = try normalizer.join(stored.query.details, &lookup)
        } catch {
            // Another version of the application wrote it: it is as good as not there.
            core.configuration.onEvent(.storageFailed(LarderError(error)))
            return content
        }
        content.times = stored.times
        content.pending = lookup.pending
        content.isPartial = lookup.missing > 0
        content.completeness =
            lookup.missing > 0 ? .gapped(lookup.missing) : stored.query.isComplete ? .complete : .partial
        // «Not modified» confirms what came with the list, and nothing that has changed since.
        let isConfirmable = lookup.stale.allSatisfy { $0.fetchedAt <= stored.times.fetchedAt }
        content.validator = content.isPartial || !isConfirmable ? nil : stored.query.entityTag
        content.stale = lookup.stale.map(\.key)
        content.isInvalidated =
            stored.query.isInvalidated || !lookup.stale.isEmpty
            || core.invalidations.covers(
                resource.tags,
                validatedAt: stored.times.validatedAt,
                order: stored.order
            )
        content.order = stored.order
        content.isFromDisk = isFromDisk
        return content
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
        facts.version = content.version
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
            version: content.version,
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

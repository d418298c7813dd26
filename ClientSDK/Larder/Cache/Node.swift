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
        /// When the last request that was answered began.
        var answeredAt: MonotonicTime?
        /// Whether the network has returned since the request began that is under way: if it fails, that says little.
        var hasNetworkReturned = false
        /// How many answers are being stored: what they change is shown when they have been.
        var answers = 0
        var observers: [UInt64: Observer<Value>] = [:]
        var lastObserver: UInt64 = 0
        /// The parts that the index of dependencies knows.
        var parts: Set<StoredKey> = []
        var isClosed = false
        /// As the latest reader gave it: it may know a newer session.
        var resource: Resource<Value>
        /// The tags that its readers have given.
        var tags: Set<String>

        init(_ resource: Resource<Value>) {
            self.resource = resource
            tags = resource.tags
        }
    }

    let key: QueryKey
    let core: CacheCore
    /// The entity that holds the value; nil where it is made of several.
    let entity: EntityKey?
    /// What the first reader gave: most readers give the same, and then nothing is looked up for them.
    let first: (freshness: FreshnessDemand, rule: FreshnessRule, tags: Set<String>)
    /// Whether nothing is on disk under the key, and nothing is to be.
    let isOffDisk = Atomic<Bool>(false)
    let state: Mutex<State>
    /// Nil where there is no value at hand. Locked alone, or while the state is.
    let standing = Mutex<Standing?>(nil)
    private let name: NodeRegistry.Name

    init(_ resource: Resource<Value>, _ core: CacheCore) {
        key = resource.key
        name = NodeRegistry.Name(resource)
        self.core = core
        entity = resource.shape.entity
        first = (resource.freshness, resource.freshness.rule(in: core.configuration.freshness), resource.tags)
        state = Mutex(State(resource))
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
            let (changes, notes, parts) = state.withLock { ($0.changes, $0.notes, $0.parts) }
            let count = core.commitCount
            let (new, found) = assemble()
            let isKnown = state.withLock { state in
                guard state.content == nil, state.changes == changes, state.notes == notes else { return false }
                core.dependencies.replace(state.parts, by: new.facts.parts, for: self)
                state.parts = new.facts.parts
                return true
            }
            // This waits for a commit that is just being applied. Commits to parts that were known before they were looked up are
            // noted; of commits to the others nothing is known here, so nothing may have been committed at all.
            let isUndisturbed = core.commitCount == count
            guard isKnown, isUndisturbed || new.facts.parts.isSubset(of: parts) else { continue }
            let isSet = state.withLock { state in
                guard state.changes == changes, state.notes == notes, state.parts == new.facts.parts else {
                    return false
                }
                state.content = new.inMemory
                state.recall = found
                state.changed = []
                let judged = new.value == nil ? nil : new.times
                standing.withLock { standing in
                    standing = judged.map { times in
                        Standing(facts: intrinsic(new, times), held: new.facts.held, changes: changes)
                    }
                }
                return true
            }
            if isSet { return new }
        }
    }

    private func assemble() -> (Content, EntityRecall?) {
        let (shape, tags, recall, changed) = state.withLock { state in
            (state.resource.shape, state.tags, state.recall, state.changed)
        }
        switch shape {
        case .single(let key, let codec, _): return (single(key, codec, tags), nil)
        case .normalized(let normalizer): return normalized(normalizer, tags, recall, changed)
        }
    }

    private func single(_ key: EntityKey, _ codec: Codec<Value>, _ tags: Set<String>) -> Content {
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
        facts.held = stored.completeness
        // What a list brought has no validator of its own, and a value of another type must not be confirmed.
        facts.validator = stored.value is Value ? stored.validator : nil
        facts.isInvalidated =
            stored.isInvalidated
            || core.invalidations.covers(
                tags,
                type: key.type,
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
        _ tags: Set<String>,
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
                // A row that does not decode is reported by the read that follows.
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
                tags,
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
            [],
            type: key.type,
            validatedAt: stored.times.validatedAt,
            order: stored.order
        ) {
            stored.isInvalidated = true
        }
        return stored
    }

    func intrinsic(_ content: Content, _ times: ValueTimes) -> FreshnessFacts {
        var facts = FreshnessFacts(times: times)
        facts.version = content.facts.version
        facts.isInvalidated = content.isInvalidated
        facts.isPartial = content.facts.isPartial
        return facts
    }
}

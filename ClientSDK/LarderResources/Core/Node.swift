import LarderEvents
import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// The state of one resource in memory: its assembled value, its request and its observers.
///
/// A read judges the assembled value, and returns it or joins the request in flight. A request takes a stamp when it begins.
/// Its reply becomes a `CacheUpdate`, and `CacheCore.commit` makes a `Commit` of it: the steps are carried out in one
/// transaction and then in memory, and a step that a later request has overtaken changes nothing. The commit then tells each node that is
/// made of a changed entity or list, and the node drops its assembled value and shows the next snapshot.
///
/// Safe from any thread. Stored values belong to the tiers, so an unused node can be released at any time.
final class Node<Value: Sendable & Equatable>: AnyNode {
    typealias Content = NodeContent<Value>

    struct State {
        /// Nil until it is assembled, and after a change.
        var content: Content?
        /// How often the content was dropped, because a part has changed, or a request has ended.
        var revision: UInt64 = 0
        /// The requests for the value; of a timeline for its newest page.
        var own = Requests()
        /// The requests for the other pages of a timeline.
        var places: [TimelinePlace: Requests] = [:]
        /// The request for the value that is joined; nil if there is none.
        var flight: Flight? { own.flight }
        /// Calls `timeCame` next, because the content changes by time or a request is due; nil: not planned.
        var timer: (end: MonotonicTime, task: Task<Void, Never>)?
        /// Whether an observer's request was postponed until `own.backOff.retryAt`.
        var owesRequest = false
        /// When the last request that has ended began.
        var askedAt: MonotonicTime?
        /// The invalidation that the last answer has not ended: the next one would not end it either.
        var unended = Stamp.never
        /// The number of answers that are being stored: their changes are shown afterwards.
        var answers = 0
        var observers: [UInt64: Observer<Value>] = [:]
        var lastObserver: UInt64 = 0
        /// The parts that are registered in the dependency index.
        var parts: Set<StoredKey> = []
        var isClosed = false
        /// The resource of the latest reader, which may know a newer session.
        var resource: Resource<Value>
        /// The tags of all readers.
        var tags: Set<String>

        init(_ resource: Resource<Value>) {
            self.resource = resource
            tags = resource.tags
        }
    }

    let key: QueryKey
    let number: UInt64
    let core: CacheCore
    /// The entity that holds the value; nil if it is made of several.
    let entity: EntityKey?
    /// The settings of the first reader. Most readers pass the same, which saves a lookup.
    let first: (freshness: Freshness.Demand, rule: Freshness.Rule, tags: Set<String>)
    /// Whether the key is kept off the disk.
    let isOffDisk = Atomic<Bool>(false)
    let state: Mutex<State>
    private let name: NodeRegistry.Name
    private let contentCost = Atomic<Int>(0)

    init(_ resource: Resource<Value>, _ core: CacheCore) {
        key = resource.key
        number = core.nodes.nextNumber()
        name = NodeRegistry.Name(resource)
        self.core = core
        entity = resource.shape.entity
        first = (resource.freshness, resource.freshness.rule(in: core.configuration.freshness), resource.tags)
        state = Mutex(State(resource))
    }

    deinit {
        let (parts, timer) = state.withLock { ($0.parts, $0.timer) }
        timer?.task.cancel()
        core.dependencies.remove(ObjectIdentifier(self), parts)
        core.nodes.forget(name)
    }

    var cost: Int { StoredEntity.overhead + contentCost.load(ordering: .relaxed) }

    // MARK: Content

    /// Whether `content` returns without reading the disk.
    var hasContent: Bool { state.withLock { $0.content != nil } }

    /// The assembled content. Reads from the disk if necessary.
    func content() -> Content {
        while true {
            if let known = state.withLock({ $0.content }) { return known }
            let (revision, parts) = state.withLock { ($0.revision, $0.parts) }
            let count = core.commitCount
            let new = assemble()
            let isKnown = state.withLock { state in
                guard state.content == nil, state.revision == revision else { return false }
                core.dependencies.replace(state.parts, by: new.facts.parts, for: self)
                state.parts = new.facts.parts
                return true
            }
            // This waits for a commit that is being applied. Commits to registered parts drop the content; for other parts there must
            // have been no commit at all.
            let isUndisturbed = core.commitCount == count
            guard isKnown, isUndisturbed || new.facts.parts.isSubset(of: parts) else { continue }
            let (isSet, other) = state.withLock { state -> (Bool, Content?) in
                guard state.revision == revision, state.parts == new.facts.parts else { return (false, nil) }
                let other = state.content
                state.content = new.inMemory
                return (true, other)
            }
            withExtendedLifetime(other) {}
            guard isSet else { continue }
            let cost = contentCost.exchange(new.facts.cost, ordering: .relaxed)
            if cost != new.facts.cost { core.nodes.keep(self, name) }
            return new
        }
    }

    private func assemble() -> Content {
        let (shape, tags) = state.withLock { ($0.resource.shape, $0.tags) }
        return switch shape {
        case .single(let key, let codec, _): single(key, codec, tags)
        case .normalized(let normalizer): normalized(normalizer, tags)
        }
    }

    private func single(_ key: EntityKey, _ codec: PayloadCodec<Value>, _ tags: Set<String>) -> Content {
        let found = core.entity(key, { try codec.decode($0) })
        let (visible, pending) = core.overlays.visible(found?.stored.value, key)
        let value = visible as? Value
        var facts = ContentFacts(parts: [.entity(key)])
        facts.pending = pending
        guard let stored = found?.stored else {
            // Created on this device, and not known to the server yet.
            if value != nil {
                facts.times = Freshness.Times(
                    fetchedAt: core.now().wall,
                    validatedAt: Freshness.Times.never,
                    expiresAt: Freshness.Times.never
                )
            }
            return Content(value, facts)
        }
        facts.times = stored.times
        facts.cost = stored.cost
        facts.version = stored.version
        facts.completeness = Completeness(stored.completeness)
        facts.held = stored.completeness
        // An entity from a list has no validator, and a value of another type must not be confirmed.
        facts.validator = stored.value is Value ? stored.validator : nil
        facts.asked = stored.asked
        facts.invalid = max(stored.invalid, core.invalidations.latest(tags, type: key.type))
        if let noted = core.invalidations.newer(than: stored.version, asked: stored.asked, of: key) {
            (facts.reason, facts.invalid) = (.olderVersion, max(facts.invalid, noted))
        } else if facts.invalid > facts.asked {
            facts.reason = .invalidated
        }
        facts.isFromDisk = found?.isFromDisk ?? false
        return Content(value, facts)
    }

    private func normalized(_ normalizer: Normalizer<Value>, _ tags: Set<String>) -> Content {
        // Counted before the first row is read: a row is not put into memory after a commit that has changed it.
        let count = core.commitCount
        guard let (stored, rows) = core.query(key) else { return Content(nil, ContentFacts(parts: [.query(key)])) }
        let keys = core.overlays.visible(stored.query.ids, key)
        var parts = Set<StoredKey>(minimumCapacity: keys.count + 2)
        for key in keys { parts.insert(.entity(key)) }
        parts.insert(.query(key))
        var facts = ContentFacts(parts: parts)
        let core = core
        var isFromDisk = rows != nil
        // An entity that is looked up twice, because it may have moved, counts twice.
        var cost = stored.cost
        // Building the tag for each entity of a list would take longer than everything else.
        let (hasMarks, hasVersions) = (core.invalidations.hasMarks, core.invalidations.hasVersions)
        var lookup = EntityLookup(keys: keys, list: stored, overlays: core.overlays) { key, decode in
            var known = core.entities[key]
            if known == nil, let row = rows?[key] {
                known = core.reporting { try core.adopt(row, decode, ifNothingSince: count) }
                if known == nil { return nil }
            }
            if known == nil, let read = core.entity(key, decode) {
                (known, isFromDisk) = (read.stored, isFromDisk || read.isFromDisk)
            }
            cost += known?.cost ?? 0
            // In place: copying a stored entity costs as much as finding it.
            if hasMarks || hasVersions { known?.apply(core.invalidations, to: key) }
            return known
        }
        lookup.invalid = core.invalidations.latest(tags)
        lookup.changes = normalizer.memberType.map { core.changes(since: stored.query, ofType: $0) }
        if let changes = lookup.changes { facts.parts.insert(changes.part) }
        let joined = core.reporting { try normalizer.join(stored.query.details, &lookup) }
        core.reportEvictions()
        guard let value = joined else {
            // Written by another version of the application: treated as missing.
            return Content(nil, facts)
        }
        facts.cost = cost
        facts.times = stored.times
        facts.pending = lookup.pending
        facts.pages = lookup.pages
        facts.isPartial = lookup.missing > 0
        facts.completeness =
            lookup.missing > 0 ? .gapped(lookup.missing) : stored.query.isComplete ? .complete : .partial
        // "Not modified" confirms entities that came with the list as they are, and none that have changed since.
        let confirmable = lookup.stale.filter {
            $0.fetchedAt <= stored.times.fetchedAt && $0.changed <= stored.query.answered
                && (normalizer.shown == .complete || !$0.isWhole)
        }
        let isConfirmable = confirmable.count == lookup.stale.count
        facts.validator = facts.isPartial || !isConfirmable ? nil : stored.query.entityTag
        facts.stale = confirmable.map(\.key)
        facts.asked = stored.query.asked
        let invalid = max(stored.query.invalid, lookup.invalid)
        facts.lacksItems = lookup.lacksCandidates || lookup.changes?.areLost ?? false
        let isInvalidated = invalid > facts.asked || !lookup.stale.isEmpty || facts.lacksItems
        facts.reason = isInvalidated ? .invalidated : nil
        facts.invalid = lookup.stale.map(\.invalid).reduce(invalid, max)
        facts.isFromDisk = isFromDisk
        return Content(value, facts)
    }
}

/// Facts about the value of a node.
struct ContentFacts: Sendable {
    var times: Freshness.Times?
    var version: Int64?
    var validator: String?
    var completeness = Completeness.unknown
    /// Whether a part of it is missing.
    var isPartial = false
    /// How complete the value is; for a value made of entities, as complete as they are.
    var held = DiskEntity.Completeness.complete
    /// Why it is stale whatever its age is.
    var reason: Freshness.StaleReason?
    /// The invalidated entities that "not modified" confirms.
    var stale: [EntityKey] = []
    /// Whether there may be items that only the source knows.
    var lacksItems = false
    var pending = 0
    /// When the request or the event began that has returned or confirmed it.
    var asked = Stamp.never
    /// The latest invalidation among those that make it stale.
    var invalid = Stamp.never
    var isFromDisk = false
    var parts: Set<StoredKey> = []
    /// The cost of its parts against the memory limit, in bytes.
    var cost = 0
    /// The pages of a timeline besides the newest.
    var pages: [FreshnessFacts] = []

    init(parts: Set<StoredKey>) { self.parts = parts }
}

/// An assembled value with its facts.
///
/// A class, because it is passed around: copying a value that is generic over a user's type is slow where the compiler does not know
/// the type.
final class NodeContent<Value: Sendable>: Sendable {
    // Before the value: the place of a field behind it depends on the type.
    let facts: ContentFacts
    /// What its freshness depends on; nil without a value.
    let judged: FreshnessFacts?
    let value: Value?

    init(_ value: Value?, _ facts: ContentFacts) {
        self.value = value
        self.facts = facts
        let times = value == nil ? nil : facts.times
        judged = times.map { FreshnessFacts(times: $0, reason: facts.reason, isPartial: facts.isPartial) }
    }

    var times: Freshness.Times? { facts.times }
    var completeness: Completeness { facts.completeness }
    /// Whether it is less complete than the reader needs.
    func isPartial(_ options: ReadOptions) -> Bool { facts.isPartial || facts.held < options.demands }
    /// The validator of a complete value: a partial one must not be confirmed.
    func validator(_ options: ReadOptions) -> String? { isPartial(options) ? nil : facts.validator }
    var isInvalidated: Bool { facts.reason != nil }

    /// The same content, marked as read from memory.
    var inMemory: NodeContent {
        guard facts.isFromDisk else { return self }
        var facts = facts
        facts.isFromDisk = false
        return NodeContent(value, facts)
    }
}

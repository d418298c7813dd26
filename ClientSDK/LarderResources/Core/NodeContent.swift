import LarderStorage
import LarderTime

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
    /// The invalidated entities.
    var stale: [EntityKey] = []
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
        judged = facts.times.map { FreshnessFacts(times: $0, reason: facts.reason, isPartial: facts.isPartial) }
    }

    var times: Freshness.Times? { facts.times }
    var completeness: Completeness { facts.completeness }
    /// Whether it is less complete than the reader needs.
    func isPartial(_ options: ReadOptions) -> Bool { facts.isPartial || facts.held < options.demands }
    /// The validator of a complete value: a partial one must not be confirmed.
    func validator(_ options: ReadOptions) -> String? { isPartial(options) ? nil : facts.validator }
    var isInvalidated: Bool { facts.reason != nil }
    var stale: [EntityKey] { facts.stale }
    var pending: Int { facts.pending }
    var isFromDisk: Bool { facts.isFromDisk }

    /// The same content, marked as read from memory.
    var inMemory: NodeContent {
        guard facts.isFromDisk else { return self }
        var facts = facts
        facts.isFromDisk = false
        return NodeContent(value, facts)
    }
}

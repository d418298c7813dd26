import LarderTime

/// What is known of a node's value besides the value.
struct ContentFacts: Sendable {
    var times: ValueTimes?
    var version: Int64?
    var validator: String?
    var completeness = Completeness.unknown
    /// Whether a part of it is missing, whatever a reader demands.
    var isPartial = false
    /// How much of it the value holds; a value that is made of entities holds what they do.
    var held = DiskEntity.Completeness.complete
    var isInvalidated = false
    /// The entities that make it stale.
    var stale: [EntityKey] = []
    var pending = 0
    /// The order of the request that brought or confirmed it.
    var order: UInt64 = 0
    var isFromDisk = false
    var parts: Set<StoredKey> = []

    init(parts: Set<StoredKey>) { self.parts = parts }
}

/// A value as the tiers have it, and what is known of it.
///
/// An object, because it is handed from hand to hand: what is generic over a user's type is copied slowly where the compiler does
/// not know that type.
final class NodeContent<Value: Sendable>: Sendable {
    let value: Value?
    let facts: ContentFacts

    init(_ value: Value?, _ facts: ContentFacts) {
        self.value = value
        self.facts = facts
    }

    var times: ValueTimes? { facts.times }
    var completeness: Completeness { facts.completeness }
    /// Whether it holds less than a reader demands.
    func isPartial(_ options: ReadOptions) -> Bool { facts.isPartial || facts.held < options.demands }
    /// The validator of a whole value: what is partial must not be confirmed.
    func validator(_ options: ReadOptions) -> String? { isPartial(options) ? nil : facts.validator }
    var isInvalidated: Bool { facts.isInvalidated }
    var stale: [EntityKey] { facts.stale }
    var pending: Int { facts.pending }
    var order: UInt64 { facts.order }
    var isFromDisk: Bool { facts.isFromDisk }

    /// The same, for whoever reads it next: they find it in memory.
    var inMemory: NodeContent {
        guard facts.isFromDisk else { return self }
        var facts = facts
        facts.isFromDisk = false
        return NodeContent(value, facts)
    }
}

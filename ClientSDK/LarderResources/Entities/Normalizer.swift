package import LarderStorage
import LarderTime

/// Splits a value into entities and a remainder, and joins them again.
package struct Normalizer<Value: Sendable>: Sendable {
    /// Passes the entities of the value to the collector in order, and returns the encoded remainder.
    package let split: @Sendable (Value, inout EntityCollector) throws -> [UInt8]
    /// Joins a value from the remainder and the current entities; throws if the remainder cannot be decoded.
    package let join: @Sendable ([UInt8], inout EntityLookup) throws -> Value
    /// How an answer is merged into the stored index; nil: it replaces the index.
    var merge: (@Sendable (DiskQuery, _ stated: StatedFreshness?) -> ListChange)?

    /// How much of an entity the value shows.
    var shown = Completeness.complete

    /// The entity type of a list with a declared condition and order; nil for other values.
    var memberType: String?

    package init(
        split: @escaping @Sendable (Value, inout EntityCollector) throws -> [UInt8],
        join: @escaping @Sendable ([UInt8], inout EntityLookup) throws -> Value
    ) {
        self.split = split
        self.join = join
    }
}

/// Collects the entities of a value.
package struct EntityCollector {
    var drafts: [EntityDraft] = []

    /// Adds an entity.
    ///
    /// - Parameters:
    ///   - entity: an entity of the value.
    ///   - completeness: how complete the entity is. A more complete stored entity of the same version stays.
    package mutating func add<E: CacheEntity>(_ entity: E, completeness: Completeness = .complete) {
        drafts.append(EntityDraft(entity, completeness: completeness))
    }
}

import LarderStorage

/// A query over the stored entities of a type, whatever has brought them. It needs no source and no network, and sees pending changes.
///
/// ```swift
/// let starred = client.cache.entities(Article.self)
///     .where(\.isStarred, .equal(true)).where { $0.title.count < 80 }
///     .sorted(by: \.title, descending: true).limit(20)
/// let now = try await starred.values()
/// for await articles in starred.updates { print(articles.count, "starred") }     // now, and after each change of the result
/// ```
///
/// What was never fetched, was evicted or has expired is not found: a query says what is on this device, and not how fresh it is.
/// `LarderCache.stored` and a declared list do.
///
/// Cost: with an index of one of the fields that it compares, or of the one that it sorts by with a limit (`CacheEntity.indices`), about what
/// it finds; without one, all entities of the type: those that are not in memory are read and decoded. A query is a value: nothing happens
/// until it is run.
public struct EntityQuery<Entity: CacheEntity>: Sendable {
    struct Condition: Sendable {
        /// The index that finds what it accepts, and how; nil: a function.
        let indexed: (field: any PartialKeyPath<Entity> & Sendable, test: FieldTest)?
        let accepts: @Sendable (Entity) -> Bool
    }

    struct Order: Sendable {
        let field: any PartialKeyPath<Entity> & Sendable
        let isDescending: Bool
        let value: @Sendable (Entity) -> FieldValue
    }

    let core: CacheCore
    var conditions: [Condition] = []
    var words: [String] = []
    var orders: [Order] = []
    var countMaximum: Int?

    /// Only entities of which a field compares so. Several conditions must all be met.
    public func `where`<Value: EntityField>(
        _ field: any KeyPath<Entity, Value> & Sendable,
        _ comparison: Comparison<Value>
    ) -> Self {
        let test = comparison.test
        return adding(Condition(indexed: (field, test)) { test.accepts($0[keyPath: field].fieldValue) })
    }

    /// Only entities for which a function returns true. It must be pure.
    public func `where`(_ isIncluded: @escaping @Sendable (Entity) -> Bool) -> Self {
        adding(Condition(indexed: nil, accepts: isIncluded))
    }

    private func adding(_ condition: Condition) -> Self {
        var query = self
        query.conditions.append(condition)
        return query
    }

    /// Only entities whose texts (`EntityIndex.text`) contain words that begin with the words of `text`, whatever their case and
    /// diacritics. A text without words finds all. A type without that index has no texts, and nothing is found.
    public func matching(_ text: String) -> Self {
        var query = self
        let new = SearchWords([text])
        query.words += new.words
        return new.words.isEmpty ? self : query
    }

    /// Sorts by a field; by the next one where the fields before are equal, and by identifier at last.
    public func sorted<Value: EntityField>(
        by field: any KeyPath<Entity, Value> & Sendable,
        descending: Bool = false
    ) -> Self {
        var query = self
        query.orders.append(
            Order(field: field, isDescending: descending) { $0[keyPath: field].fieldValue }
        )
        return query
    }

    /// At most so many, the first ones of the order.
    public func limit(_ count: Int) -> Self {
        var query = self
        // A larger one finds the same, and calculations with this one do not overflow.
        query.countMaximum = min(max(0, count), 1 << 40)
        return query
    }

    // MARK: Running

    /// The entities, with pending changes applied.
    ///
    /// - Throws: `.storage` if the store cannot be read; `.closed`.
    nonisolated(nonsending) public func values() async throws(LarderError) -> [Entity] {
        try await buildIndices()
        let query = self
        return try await core.reading { () async throws(LarderError) in try query.run() }
    }

    /// The number of entities, at most the limit. Cost: that of `values`.
    nonisolated(nonsending) public func count() async throws(LarderError) -> Int { try await values().count }

    /// The entities now, and after each change of the result. Nothing runs while no entity of the type changes; after a change the query is
    /// run again, and changes in quick succession are taken together. An error of the store is reported as a `CacheEvent`, and the
    /// next change tries again. The sequence ends when its task is cancelled and when the cache is closed.
    /// Each iteration observes separately.
    public var updates: some AsyncSequence<[Entity], Never> & Sendable { Updates(query: self) }
}

extension LarderCache {
    /// A local query over all stored entities of a type; see `EntityQuery`.
    public func entities<Entity: CacheEntity>(_ type: Entity.Type) -> EntityQuery<Entity> { EntityQuery(core: core) }
}

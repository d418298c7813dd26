/// Changes to what is stored that happen together or not at all, and that every list and every observer then shows.
///
/// It collects; `LarderCache.update` carries it out, in the order in which it was said.
///
/// The closures that it is given, codecs and `==` run in the middle of that, within a transaction: they must not change the cache. A
/// call from one of them to `LarderCache.update`, `enqueue` and the like stops the process with a message.
public struct Update: Sendable {
    enum Step: Sendable {
        case put(EntityDraft, validator: String?, lifetime: Duration?, source: DiskEntity.Source)
        case modify(EntityKey, StoredEntityModifier)
        case remove(EntityKey, version: Int64?)
        case touch(EntityKey, validator: String?, lifetime: Duration?)
        case invalidate(EntityKey)
        case putQuery(DiskQuery, lifetime: Duration?)
        case editQuery(QueryKey, @Sendable (inout DiskQuery) -> Void)
        case mergeQuery(QueryKey, QueryMerge)
        case insertNewest(NewestItems)
        case touchQuery(QueryKey, validator: String?, lifetime: Duration?)
        case removeQuery(QueryKey)
        case invalidateQuery(QueryKey)
        case invalidateTag(InvalidationTable.Name)
        case token(String?, feed: String)
        case metadata([UInt8]?, key: String)
        case disk(@Sendable (borrowing DiskStore.WriteTransaction) throws -> Void)
        case overlay(EntityKey, @Sendable (inout [Overlay]) -> Void)
        case queryOverlay(QueryKey, @Sendable (inout [QueryOverlay]) -> Void)
        /// Another process may have changed it on disk.
        case reread(EntityKey)
        case rereadQuery(QueryKey)
        /// It stays in memory, and is removed from the disk.
        case keepOffDisk(StoredKey)
    }

    var steps: [Step] = []
    /// Nothing of it touches the disk.
    var isMemoryOnly = false
    /// What the update is the answer to: where that is kept off the disk, nothing of the update touches the disk.
    var answered: StoredKey?
    /// It belongs to sending what waits in the outbox, and may use the room on the disk that is kept for that.
    var mayUseReserve = false

    init() {}

    // MARK: Entities

    /// Stores an entity as the server has it, unless what is stored is newer.
    ///
    /// - Parameters:
    ///   - completeness: how much of it the value holds. What is stored and more complete stays, in the same version.
    ///   - validator: the ETag that came with it; nil where it came as a part of something else.
    ///   - lifetime: for how long it may be called fresh; nil: as long as its readers' rules say.
    public mutating func put<E: Entity>(
        _ entity: E,
        completeness: Completeness = .complete,
        validator: String? = nil,
        lifetime: Duration? = nil
    ) {
        steps.append(
            .put(
                EntityDraft(entity, completeness: completeness),
                validator: validator,
                lifetime: lifetime,
                source: validator == nil ? .event : .network
            )
        )
    }

    /// Changes an entity that is stored, as an event does that names what has changed. Its times stay as they are. Where it is not
    /// stored nothing happens.
    public mutating func modify<E: Entity>(
        _ type: E.Type,
        _ id: String,
        _ change: @escaping @Sendable (inout E) -> Void
    ) {
        steps.append(.modify(E.key(id), StoredEntityModifier(E.self, change)))
    }

    /// Removes an entity from the store and from every list.
    ///
    /// - Parameter version: the version in which it was deleted: nothing of that version or an older one brings it back.
    public mutating func remove<E: Entity>(_ type: E.Type, _ id: String, deletedInVersion version: Int64? = nil) {
        steps.append(.remove(E.key(id), version: version))
    }

    /// Declares an entity stale, until it comes again or is confirmed.
    public mutating func invalidate<E: Entity>(_ type: E.Type, _ id: String) { steps.append(.invalidate(E.key(id))) }

    /// Removes an entity by its key: as `remove(_:_:deletedInVersion:)`, for changes whose type is known by its name only.
    public mutating func remove(_ key: EntityKey, deletedInVersion version: Int64? = nil) {
        steps.append(.remove(key, version: version))
    }

    /// Declares an entity stale by its key.
    public mutating func invalidate(_ key: EntityKey) { steps.append(.invalidate(key)) }

    /// Declares all entities of a type stale.
    public mutating func invalidate<E: Entity>(all type: E.Type) {
        steps.append(.invalidateTag(.type(E.entityType)))
    }

    // MARK: Queries

    /// Declares what is stored under a key stale.
    public mutating func invalidate(_ key: QueryKey) { steps.append(.invalidateQuery(key)) }

    /// Declares everything stale whose resource has the tag.
    public mutating func invalidate(tag: String) { steps.append(.invalidateTag(.tag(tag))) }

    /// Changes which entities a list names, and their order. Where it is not stored nothing happens.
    ///
    /// It is done again to the answer of a request that was on its way meanwhile, which need not know of it: so it should do no more
    /// where it was done already.
    public mutating func edit(_ key: QueryKey, _ change: @escaping @Sendable (inout [EntityKey]) -> Void) {
        steps.append(.editQuery(key) { change(&$0.ids) })
    }

    /// Changes all that is stored of a list: what it names, its validator, whether it is stale. Where it is not stored nothing happens.
    public mutating func editQuery(_ key: QueryKey, _ change: @escaping @Sendable (inout DiskQuery) -> Void) {
        steps.append(.editQuery(key, change))
    }

    /// Removes a list. The entities that it names stay.
    public mutating func remove(_ key: QueryKey) { steps.append(.removeQuery(key)) }

    // MARK: Feeds and metadata

    /// Keeps a feed's change token, together with what it covers; nil removes it.
    public mutating func setToken(_ token: String?, for feed: String) { steps.append(.token(token, feed: feed)) }

    /// Keeps a value of the caller's that is never evicted; nil removes it. At most 1 MiB.
    public mutating func setMetadata(_ value: [UInt8]?, for key: String) { steps.append(.metadata(value, key: key)) }
}

/// A change to a stored entity, without its type.
struct StoredEntityModifier: Sendable {
    let decode: @Sendable ([UInt8]) throws -> any Sendable
    let encode: @Sendable (any Sendable) throws -> [UInt8]
    let change: @Sendable (any Sendable) -> any Sendable
    let version: @Sendable (any Sendable) -> Int64?

    init<E: Entity>(_ type: E.Type, _ change: @escaping @Sendable (inout E) -> Void) {
        decode = { try E.codec.decode($0) }
        encode = { value in
            guard let entity = value as? E else { throw LarderError(.encoding, "A stored entity is not a \(E.self).") }
            return try E.codec.encode(entity)
        }
        self.change = { value in
            guard var entity = value as? E else { return value }
            change(&entity)
            return entity
        }
        version = { ($0 as? E)?.entityVersion }
    }
}

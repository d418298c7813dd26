import LarderMemory
public import LarderStorage
import LarderTime

/// Changes to stored values that are applied in one commit and shown by every list and every observer.
///
/// It collects changes; `LarderCache.update` applies them in the order of the calls.
///
/// Its closures, codecs and `==` run within the transaction and must not change the cache. A call from one of them to
/// `LarderCache.update`, `enqueue` and the like stops the process with a message.
public struct CacheUpdate: Sendable {
    enum Step: Sendable {
        case put(EntityDraft, validator: String?, stated: StatedFreshness?)
        case modify(EntityKey, StoredEntityModifier)
        case remove(EntityKey, version: Int64?)
        case touch(StoredKey, validator: String?, stated: StatedFreshness?)
        case invalidate(StoredKey)
        case changeList(QueryKey, ListChange)
        case insertNewest(QueryKey, [NewestItem])
        case removeQuery(QueryKey)
        case invalidateTag(InvalidationTable.Name)
        case noteVersion(EntityKey, Int64)
        case token(String?, feed: String)
        case metadata([UInt8]?, key: String)
        /// Moved from the disk to memory.
        ///
        /// - Parameter isFinal: whether nothing is written to the disk under the key until the cache is closed.
        case keepOffDisk(StoredKey, isFinal: Bool)
    }

    /// A change of memory alone.
    enum LocalChange: Sendable {
        case show(StoredKey, Overlay)
        /// Shows a pending change no longer.
        case hide(StoredKey, operation: Int64)
        /// Read again, because another process may have changed it on disk.
        case reread(StoredKey)

        var key: StoredKey {
            switch self {
            case .show(let key, _), .hide(let key, _), .reread(let key): key
            }
        }
    }

    var steps: [Step] = []
    /// Made after the rows of the outbox are stored.
    var local: [LocalChange] = []
    /// Changes of the outbox's rows: one transaction of the outbox's store, after that of the content.
    var rows: [@Sendable (DiskConnection) throws -> Void] = []
    /// The page of a change feed that the events are of; nil: they have just been pushed.
    var page: PulledPage?
    /// Whether nothing is written to the disk.
    var isMemoryOnly = false
    /// Whether a value that the store cannot take stays in memory alone, as those of replies. Otherwise the update fails.
    var toleratesValues = false
    /// What the rows of the outbox must survive.
    var durability = DiskStore.Durability.processDeath
    /// Whether it may use the disk space that is reserved for sending from the outbox.
    var mayUseReserve = false

    init() {}

    /// The reply to a request for a key.
    ///
    /// - Parameter mayStore: whether it may be written to the disk. Otherwise what the disk has under the key moves to memory.
    init(answering key: StoredKey, mayStore: Bool) {
        isMemoryOnly = !mayStore
        if isMemoryOnly { steps = [.keepOffDisk(key, isFinal: false)] }
    }

    /// Whether it changes nothing.
    package var isEmpty: Bool { steps.isEmpty && isContent }

    /// Whether it changes nothing of the outbox.
    var isContent: Bool { rows.isEmpty && local.isEmpty }

    // MARK: Entities

    /// Stores an entity as the server has it, unless the stored one is newer.
    ///
    /// - Parameters:
    ///   - entity: the entity to store.
    ///   - completeness: how complete the value is. A more complete stored value of the same version stays.
    ///   - validator: the ETag that came with it; nil if it came as a part of something else.
    ///   - lifetime: how long it is fresh for readers that follow its source; nil: not stated.
    public mutating func put<E: CacheEntity>(
        _ entity: E,
        completeness: Completeness = .complete,
        validator: String? = nil,
        lifetime: Duration? = nil
    ) {
        steps.append(
            .put(
                EntityDraft(entity, completeness: completeness),
                validator: validator,
                stated: lifetime.map { StatedFreshness(lifetime: max(.zero, $0)) }
            )
        )
    }

    /// Changes a stored entity; its times stay. Nothing happens if it is not stored.
    public mutating func modify<E: CacheEntity>(
        _ type: E.Type,
        _ id: E.ID,
        _ change: @escaping @Sendable (inout E) -> Void
    ) {
        steps.append(.modify(E.key(id), StoredEntityModifier(E.self, change)))
    }

    /// Removes an entity from the store and from every list.
    ///
    /// - Parameters:
    ///   - type: the type of the entity.
    ///   - id: its ID.
    ///   - version: the version in which it was deleted: values of that version or an older one do not restore it.
    public mutating func remove<E: CacheEntity>(_ type: E.Type, _ id: E.ID, deletedInVersion version: Int64? = nil) {
        steps.append(.remove(E.key(id), version: version))
    }

    /// Invalidates an entity until it is fetched or confirmed again.
    public mutating func invalidate<E: CacheEntity>(_ type: E.Type, _ id: E.ID) {
        invalidate(E.key(id))
    }

    /// Removes an entity by its key: for changes whose type is known by its name only.
    public mutating func remove(_ key: EntityKey, deletedInVersion version: Int64? = nil) {
        steps.append(.remove(key, version: version))
    }

    /// Invalidates an entity by its key.
    public mutating func invalidate(_ key: EntityKey) { invalidate(.entity(key)) }

    mutating func invalidate(_ key: StoredKey) { steps.append(.invalidate(key)) }

    /// Invalidates all entities of a type.
    public mutating func invalidate<E: CacheEntity>(all type: E.Type) {
        steps.append(.invalidateTag(.type(E.entityType)))
    }

    // MARK: Queries

    /// Invalidates the value that is stored under a key.
    public mutating func invalidate(_ key: QueryKey) { invalidate(.query(key)) }

    /// Invalidates all values whose resource has the tag.
    public mutating func invalidate(tag: String) { steps.append(.invalidateTag(.tag(tag))) }

    /// Changes the keys of a list and their order. Nothing happens if the list is not stored.
    ///
    /// What it changes is changed again in the reply to an earlier request, and it must have no effect where it is applied already. If it has an
    /// effect, the list loses its validator, which stands for the keys of a reply: the next request fetches the whole list.
    ///
    /// - Parameters:
    ///   - key: the key of the list.
    ///   - maximum: a change after which the list would be longer than before and than this is not made: the list is invalidated instead, so
    ///     that the next read fetches it.
    ///   - change: changes the keys.
    public mutating func edit(
        _ key: QueryKey,
        atMost maximum: Int = .max,
        _ change: @escaping @Sendable (inout [EntityKey]) -> Void
    ) {
        steps.append(
            .changeList(
                key,
                ListChange(.edit) { query, context in
                    let known = query.ids
                    var keys = known
                    change(&keys)
                    guard keys != known else { return }
                    query.entityTag = nil
                    guard keys.count <= max(known.count, maximum) else { return query.isInvalidated = true }
                    // In a timeline the server has not stated the places of added ones yet.
                    let time = context.startedAt.nanosecondsSinceEpoch
                    query.members.setKeys(keys, markingNew: RunList.Insertion(insertedAt: time, isOwn: true).mark)
                }
            )
        )
    }

    /// Removes a list. Its entities stay.
    public mutating func remove(_ key: QueryKey) { steps.append(.removeQuery(key)) }

    mutating func remove(_ key: StoredKey) {
        switch key {
        case .entity(let key): remove(key)
        case .query(let key): remove(key)
        }
    }

    // MARK: Feeds and metadata

    /// Stores the change token of a feed in the same commit as the changes; nil removes it.
    public mutating func setToken(_ token: String?, for feed: String) { steps.append(.token(token, feed: feed)) }

    /// Stores a value of the caller that is never evicted, at most 1 MiB; nil removes it.
    public mutating func setMetadata(_ value: [UInt8]?, for key: String) { steps.append(.metadata(value, key: key)) }
}

extension CacheUpdate {
    /// The update with its values encoded, so that no codec runs while others wait for the commit. Values that are merged with the
    /// stored ones are encoded within the commit, and values that are stored already are not encoded.
    func encoded(unlessEqualTo known: MemoryTier<EntityKey, StoredEntity>) -> CacheUpdate {
        var update = self
        for (index, step) in steps.enumerated() {
            guard case .put(var draft, let validator, let stated) = step, draft.merge == nil else { continue }
            if let stored = known[draft.key], stored.version == draft.version, draft.isEqual(stored.value) { continue }
            draft.payload = Result { try draft.encode() }
            update.steps[index] = .put(draft, validator: validator, stated: stated)
        }
        return update
    }
}

/// A type-erased change to a stored entity.
struct StoredEntityModifier: Sendable {
    /// When the write was sent whose reply it is; nil: it is none.
    var sentAt: Stamp?
    let decode: @Sendable ([UInt8]) throws -> any Sendable
    let change: @Sendable (any Sendable) throws -> EntityDraft

    init<E: CacheEntity>(_ type: E.Type, _ change: @escaping @Sendable (inout E) -> Void) {
        decode = { try E.codec.decode($0) }
        self.change = { value in
            guard var entity = value as? E else { throw LarderError(.encoding, "A stored entity is not a \(E.self).") }
            change(&entity)
            return EntityDraft(entity, completeness: .complete)
        }
    }
}

import LarderMemory
import LarderStorage
import LarderTime
import Synchronization

/// Applies an update to the disk within one transaction, and collects the changes of the memory tier.
struct Commit {
    /// A change of the memory tier.
    enum Change<Stored: Sendable>: Sendable {
        case set(Stored)
        case removed
        /// It has changed on disk and is not in memory.
        case elsewhere

        var stored: Stored? { if case .set(let stored) = self { stored } else { nil } }
    }

    let core: CacheCore
    /// When the request that was answered, the event or the change began.
    let stamp: Stamp
    /// When the commit itself began.
    let committed: Stamp
    var moment: Moment
    /// The page of a change feed that it stores; nil if it stores none.
    var page: PulledPage?
    /// Whether nothing of it may be written to the disk.
    var isMemoryOnly = false
    /// Whether a value that the store cannot take stays in memory alone. Otherwise it makes the commit fail.
    var isTolerant = false

    var entities: [EntityKey: Change<StoredEntity>] = [:]
    var queries: [QueryKey: Change<StoredQuery>] = [:]
    var local: [CacheUpdate.LocalChange] = []
    /// Places that no row states: of entities of which a part was replaced, whose rows keep the stamp of the rest, of keys that were
    /// invalidated while nothing was stored under them, and of values that were removed with their list.
    var notedPlaces: [(StoredKey, DiskStore.Place)] = []
    /// Keys of values and deletions that have no row on the disk.
    private(set) var unstored: Set<StoredKey> = []
    /// The entities whose values this commit has changed or removed.
    var changedValues: Set<EntityKey> = []
    /// The lists to write after all steps, so that each list is written once, with whether they may not be on the disk.
    var listsToWrite: [QueryKey: Bool] = [:]
    /// Replaces the cache's own when the rows are stored.
    private(set) var hidden = HiddenRows()
    private(set) var problems: [LarderError] = []
    /// The number of the commit among those whose content precedes rows of the outbox; nil if it is none of them.
    var settled: Int64?
    var hasNewMarks = false
    /// Whether a value was on disk whose key is kept off the disk.
    var hasLeftDisk = false
    /// The nodes that depend on the changes.
    var affected: [any AnyNode] = []

    init(core: CacheCore, stamp: Stamp, moment: Moment) {
        self.core = core
        self.stamp = stamp
        self.moment = moment
        committed = core.stamps.next()
    }

    /// Applies steps to rows.
    mutating func perform(_ steps: [CacheUpdate.Step], _ rows: Rows) throws {
        for step in steps { try perform(step, rows) }
        for (key, isOffDisk) in listsToWrite { try write(key, isOffDisk: isOffDisk, rows) }
        listsToWrite = [:]
        unstored.formUnion(rows.inMemory)
        hidden = rows.hidden
    }

    private mutating func perform(_ step: CacheUpdate.Step, _ rows: Rows) throws {
        switch step {
        case .put(let draft, let validator, let stated): try put(draft, validator, stated, rows)
        case .modify(let key, let modifier): try modify(key, modifier, rows)
        case .remove(let key, let version): try remove(key, version, rows)
        case .touch(.entity(let key), let validator, let stated): try touch(key, validator, stated, rows)
        case .touch(.query(let key), let validator, let stated):
            try change(key, ListChange(confirming: validator, stated), rows)
        case .invalidate(let key): try invalidate(key, rows)
        case .changeList(let key, let change): try self.change(key, change, rows)
        case .insertNewest(let key, let items): try change(key, ListChange(inserting: items), rows)
        case .removeQuery(let key):
            if isOvertaken(.query(key), try rows.place(of: .query(key))?.place) { return }
            try rows.remove(key)
            queries[key] = .removed
            let whole = EntityKey(wholeValueOf: key)
            entities[whole] = .removed
            // A reply to an earlier request does not store it again.
            notedPlaces.append((.entity(whole), .init(asked: stamp, isRemoval: true)))
        case .invalidateTag(let name):
            core.invalidations.mark(name, at: stamp)
            hasNewMarks = true
        case .noteVersion(let key, let version): try noteVersion(key, version, rows)
        case .token(let token, let feed): try rows.disk?.setToken(token, for: feed)
        case .metadata(let value, let key): try rows.disk?.setMetadata(value, for: key)
        case .keepOffDisk(let key, let isFinal):
            if isFinal { core.memoryOnly.insert(key) }
            try keepOffDisk(key, rows)
        }
    }

    /// Drops the decoded value of a key, because another process has changed its row.
    mutating func forget(_ key: StoredKey) {
        switch key {
        case .entity(let key): entities[key] = .elsewhere
        case .query(let key): queries[key] = .elsewhere
        }
    }

    /// Records an error that does not stop the commit. It is reported afterwards.
    mutating func note(_ problem: LarderError) { problems.append(problem) }

    // MARK: Entities

    func current(_ key: EntityKey) -> StoredEntity? { entities[key].map(\.stored) ?? core.entities[key] }

    func times(_ stated: StatedFreshness?) -> Freshness.Times {
        let moment = page?.moment ?? moment
        var times = Freshness.Times(stated, at: moment.wall, asked: stamp)
        times.validatedUptime = moment.uptime
        return times
    }

    private mutating func put(
        _ draft: EntityDraft,
        _ validator: String?,
        _ stated: StatedFreshness?,
        _ rows: Rows
    ) throws {
        var draft = draft
        let key = draft.key
        let known = current(key)
        let row = try rows.place(of: .entity(key))
        let place = place(of: .entity(key), row?.place)
        // Without versions it is not known whether the write, or the reply that has come meanwhile, is the newer one.
        let isUncertain =
            draft.sentAt.map { $0 < place?.asked ?? .never } ?? false
            && (draft.version == nil || known?.version == nil)
        if let place {
            let value = known?.value
            if try keeps(key, place, over: draft.version, isEqual: value.map(draft.isEqual) ?? false, rows) { return }
            if isOvertaken(by: place, version: draft.version) { return try dropAnswer(key, place, rows) }
        }
        if let known, let old = known.version, let new = draft.version {
            if new < old { return }
            if new == old && draft.merge == nil && draft.completeness < known.completeness {
                return try renew(key, known, stated, isPart: draft.list != nil, rows)
            }
        }
        /// The stored value of which only a part was replaced. The rest is not newer than before.
        var base: StoredEntity?
        if let merge = draft.merge {
            let new = draft
            let isOffDisk = (row != nil || known != nil) && rows.isOffDisk(.entity(key), row)
            let (merged, old) = try merged(new, merge, known, isOffDisk: isOffDisk, rows)
            draft = merged
            if let old, new.completeness < old.completeness { base = old }
        }
        // A merged draft is off the disk if one of its parts is.
        let isOffDisk =
            isMemoryOnly || draft.isMemoryOnly || core.memoryOnly.contains(.entity(key))
            || draft.list.map { core.memoryOnly.contains($0) } ?? false
        var validator = validator
        if let known, known.version == draft.version, known.completeness == draft.completeness,
            known.validator == validator || validator == nil, draft.isEqual(known.value)
        {
            // Otherwise it gets a row where it belongs.
            if let row, !row.isOffDisk || rows.goesToMemory(isOffDisk: isOffDisk) {
                if base != nil { return }
                return try renew(key, known, stated, isPart: draft.list != nil, rows)
            }
            validator = known.validator
        }
        var stored = StoredEntity(
            value: draft.value,
            times: base?.times ?? times(stated),
            version: draft.version,
            validator: validator,
            completeness: draft.completeness,
            // An earlier stamp with a newer version has seen what the later one has.
            asked: base?.asked ?? max(stamp, place?.asked ?? .never),
            invalid: base?.invalid ?? invalidation(of: .entity(key), known?.invalid ?? place?.invalid),
            changed: committed,
            cost: StoredEntity.overhead
        )
        // The rest of the value is as old as before, and no earlier request may replace the new part.
        if base != nil { notedPlaces.append((.entity(key), .init(asked: stamp, version: draft.version))) }
        let payload: [UInt8]?
        do { payload = try draft.encoded() } catch {
            note(LarderError(.encoding, "\(key) could not be encoded and is not stored: \(error)", cause: error))
            payload = nil
        }
        if let payload {
            stored.cost += payload.count
            switch try write(stored, payload, key, isOffDisk: isOffDisk, row, rows) {
            case .stored, nil: break
            case .keptNewer: return
            case .keptMoreComplete: return try renew(key, known, stated, isPart: draft.list != nil, rows)
            }
        } else {
            // It is shown as long as it stays in memory. The row is an older value.
            unstored.insert(.entity(key))
            try rows.removeValue(key)
        }
        entities[key] = .set(stored)
        changedValues.insert(key)
        if isUncertain { try invalidate(.entity(key), rows) }
    }

    /// Writes an entity.
    ///
    /// - Returns: nil if the store cannot take the value. It stays in memory, because otherwise it would make every later commit fail too,
    ///   and its row is removed, because it is an older value.
    mutating func write(
        _ stored: StoredEntity,
        _ payload: [UInt8],
        _ key: EntityKey,
        isOffDisk: Bool,
        _ known: Rows.Place?,
        _ rows: Rows
    ) throws -> DiskStore.PutOutcome? {
        var entity = DiskEntity(
            key,
            payload: payload,
            version: stored.version,
            entityTag: stored.validator,
            stored.times.row,
            stored.completeness
        )
        (entity.asked, entity.invalid, entity.changed) = (stored.asked, stored.invalid, stored.changed)
        if let value = stored.value as? any CacheEntity, value.entityKey == key { entity.fields = value.indexedFields }
        let isInMemory = rows.goesToMemory(isOffDisk: isOffDisk)
        do {
            return try rows.put(entity, isOffDisk: isOffDisk, known?.place)
        } catch let error as DiskError where error.isOfValue && (isTolerant || isInMemory) {
            if !isInMemory { note(LarderError(error)) }
            unstored.insert(.entity(key))
            try rows.removeValue(key)
            return nil
        }
    }

    /// Writes a list that a step has changed. One that the store cannot take stays in memory, and its row is removed.
    mutating func write(_ key: QueryKey, isOffDisk: Bool, _ rows: Rows) throws {
        guard var stored = queries[key]?.stored else { return }
        let isInMemory = rows.goesToMemory(isOffDisk: isOffDisk)
        do {
            stored.query = try rows.put(stored.query, isOffDisk: isOffDisk)
        } catch let error as DiskError where error.isOfValue && (isTolerant || isInMemory) {
            if !isInMemory { note(LarderError(error)) }
            unstored.insert(.query(key))
            try rows.remove(key)
        }
        queries[key] = .set(stored)
    }
}

/// The order of changes. A change is overtaken if what is stored was asked for later; versions decide where both have one. What is stored
/// is stale if it was invalidated after it was asked for.
extension Commit {
    /// The keys that nodes have to look up again.
    var changed: Set<StoredKey> {
        var keys = Set(local.map(\.key))
        for key in entities.keys { keys.insert(.entity(key)) }
        for key in queries.keys { keys.insert(.query(key)) }
        // Declared lists depend on all entities of their type.
        for type in Set(keys.compactMap(\.entity?.type)) { keys.insert(ListChanges.part(ofType: type)) }
        return keys
    }

    /// Whether what is at a place is newer than this commit.
    func isOvertaken(by place: DiskStore.Place, version: Int64?) -> Bool { place.overtakes(stamp, version: version) }

    /// Whether what is stored under a key is newer than this commit.
    func isOvertaken(_ key: StoredKey, _ row: DiskStore.Place?) -> Bool {
        place(of: key, row).map { isOvertaken(by: $0, version: nil) } ?? false
    }

    /// The place of what is stored under a key, or was removed; nil if nothing is known.
    ///
    /// - Parameter row: that of its row. A value that the store could not take has none.
    func place(of key: StoredKey, _ row: DiskStore.Place?) -> DiskStore.Place? {
        let known: DiskStore.Place? =
            switch key {
            case .entity(let key): current(key)?.place
            case .query(let key): self.known(key)?.place
            }
        var found = known ?? row
        if let rowless = core.rowless[key], rowless.asked > found?.asked ?? .never { found = rowless }
        // A stamp of the future is damaged.
        if let asked = found?.asked, asked > stamp, asked > core.stamps.next() { found?.asked = .never }
        return found
    }

    /// The latest invalidation of a key.
    ///
    /// - Parameter known: that of the stored value.
    func invalidation(of key: StoredKey, _ known: Stamp?) -> Stamp {
        max(known ?? .never, core.rowless[key]?.invalid ?? .never)
    }

    /// The stamps of what this commit has changed and what has no row on the disk (`RowlessStamps`).
    var rowless: [(StoredKey, DiskStore.Place)] {
        let removal = DiskStore.Place(asked: stamp, isRemoval: true)
        var places = notedPlaces
        for (name, change) in entities where unstored.contains(.entity(name)) {
            if case .set(let stored) = change { places.append((.entity(name), stored.place)) }
            if case .removed = change { places.append((.entity(name), removal)) }
        }
        for (name, change) in queries {
            if case .set(let stored) = change, unstored.contains(.query(name)) {
                places.append((.query(name), stored.place))
            }
            if case .removed = change { places.append((.query(name), removal)) }
        }
        return places
    }
}

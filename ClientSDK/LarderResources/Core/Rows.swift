import LarderStorage
import Synchronization

/// The rows that a commit reads and changes.
///
/// The row of a key is in the cache's store, or in the store in memory: if it may not be on the disk, while the disk takes no changes,
/// and in a cache without a directory. What is in memory counts. A row on the disk that lacks a change is hidden (`HiddenRows`), and the
/// next transaction that the disk takes replaces it by what is in memory (`catchUp`).
final class Rows {
    /// Where a key is in the order of changes, and whether its row may not be on the disk.
    typealias Place = (place: DiskStore.Place, isOffDisk: Bool)

    let core: CacheCore
    /// The transaction of the cache's store; nil without one, and while the disk takes no changes.
    let disk: DiskConnection?
    /// The transaction of the store in memory; nil if it has no rows and gets none.
    let memory: DiskConnection?
    /// Those of the cache with the changes of this commit.
    var hidden: HiddenRows
    /// That of the commit's request or event.
    let stamp: Stamp
    /// Whether the content on the disk could not be read.
    private var isUnreadable = false
    /// The keys whose rows in memory were changed.
    private(set) var inMemory: Set<StoredKey> = []

    init(_ core: CacheCore, disk: DiskConnection?, memory: DiskConnection?, stamp: Stamp) {
        (self.core, self.disk, self.memory, self.stamp) = (core, disk, memory, stamp)
        hidden = core.hidden.withLock { $0 }
    }

    private var isDiskTierOff: Bool { core.isDiskTierOff.load(ordering: .acquiring) }

    /// The transaction for content; nil while it is in memory alone.
    private var content: DiskConnection? { isDiskTierOff || hidden.isAll ? nil : disk }

    /// Reads the content on the disk, also while the disk takes no changes; nil also if it can then not be read, which is reported.
    private func readContent<Found>(
        _ body: (DiskConnection) throws -> Found?,
        ifUnreadable fail: () -> Void = {}
    ) throws -> Found? {
        if let content { return try body(content) }
        guard disk == nil, let store = core.contentDisk else { return nil }
        do { return try store.read(body) } catch {
            let problem = LarderError(error)
            core.delayed.add { [core] in core.configuration.onEvent(.storageFailed(problem)) }
            isUnreadable = true
            fail()
            return nil
        }
    }

    // MARK: Reading

    /// Where a key is in the order of changes; nil without a row.
    func place(of key: StoredKey) throws -> Place? {
        try find(key) { try $0.place(of: key) }.map { found in
            (found.row, found.isInMemory && !(hidden.keys[key]?.belongsOnDisk ?? false))
        }
    }

    /// Whether the row of a key whose decoded value is known may not be on the disk. Without a place the memory or the disk has evicted it:
    /// the memory if it may have had it, unless the row belongs on the disk or could not be read there.
    func isOffDisk(_ key: StoredKey, _ place: Place?) -> Bool {
        place?.isOffDisk
            ?? (core.memoryRows.mayHave(key) && !isUnreadable && !(hidden.keys[key]?.belongsOnDisk ?? false))
    }

    func entity(_ key: EntityKey) throws -> DiskEntity? { try find(.entity(key)) { try $0.entity(key) }?.row }

    func query(_ key: QueryKey) throws -> DiskQuery? { try find(.query(key)) { try $0.query(key) }?.row }

    /// What a key has, in memory if it has a place there, or else on the disk unless that is hidden.
    private func find<Found>(
        _ key: StoredKey,
        _ look: (DiskConnection) throws -> Found?
    ) throws -> (row: Found, isInMemory: Bool)? {
        if let memory, try placeInMemory(of: key) != nil { return try look(memory).map { ($0, true) } }
        return hidden.contains(key) ? nil : try readContent(look).map { ($0, false) }
    }

    private func placeInMemory(of key: StoredKey) throws -> DiskStore.Place? {
        guard let memory, core.memoryRows.mayHave(key) else { return nil }
        return try memory.place(of: key)
    }

    /// The lists with an entity.
    func queries(with key: EntityKey) throws -> Set<QueryKey> {
        let kept = try memory?.queries(with: key) ?? []
        let stored = try readContent { try $0.queries(with: key) } ?? []
        return Set(kept).union(stored.filter { !hidden.contains(.query($0)) })
    }

    // MARK: Changing

    /// Whether a row is stored in memory.
    ///
    /// - Parameter isOffDisk: whether it may not be on the disk.
    func goesToMemory(isOffDisk: Bool) -> Bool { isOffDisk || content == nil }

    /// Stores an entity. Its row is then at one place.
    ///
    /// - Parameter known: where its row is now; nil: there is none.
    func put(
        _ row: DiskEntity,
        isOffDisk: Bool,
        _ known: DiskStore.Place?
    ) throws -> DiskStore.PutOutcome {
        let isMoved =
            try known != nil
            && (placeInMemory(of: .entity(row.key)) != nil) != goesToMemory(isOffDisk: isOffDisk)
        // The store that it moves to does not know the version.
        if isMoved, let place = known, let new = row.version, let old = place.version,
            new < old || place.isRemoval && new == old
        {
            return .keptNewer
        }
        guard let target = target(.entity(row.key), isOffDisk: isOffDisk) else { return .stored }
        let outcome = try target.put(row)
        if outcome == .stored, isMoved, let other = target === memory ? content : memory {
            try other.remove(.entity(row.key))
        }
        return outcome
    }

    func put(_ list: DiskQuery, isOffDisk: Bool) throws -> DiskQuery {
        guard let target = target(.query(list.key), isOffDisk: isOffDisk) else { return list }
        let stored = try target.put(list)
        try (target === memory ? content : memory)?.remove(.query(list.key))
        return stored
    }

    /// The transaction that a row goes to. What the disk has under the key counts no longer.
    private func target(_ key: StoredKey, isOffDisk: Bool) -> DiskConnection? {
        guard goesToMemory(isOffDisk: isOffDisk) else { return content }
        core.memoryRows.note(key)
        inMemory.insert(key)
        hide(key, belongsOnDisk: !isOffDisk)
        return memory
    }

    /// Hides what the disk has under a key, if it takes no changes, or if all of its content is hidden.
    private func hide(_ key: StoredKey, belongsOnDisk: Bool) {
        if core.disk != nil, !isDiskTierOff, content == nil {
            hidden.insert(key, belongsOnDisk: belongsOnDisk, at: stamp)
        }
    }

    /// Changes a row where it is. One on a disk that takes no changes gets a copy in memory first; one that cannot be read is hidden.
    private func edit(_ key: StoredKey, _ body: (DiskConnection) throws -> Void) throws {
        if let memory, try placeInMemory(of: key) != nil {
            inMemory.insert(key)
            return try body(memory)
        }
        if let content { return try body(content) }
        guard !hidden.contains(key), let memory else { return }
        let hideUnread = { self.hide(key, belongsOnDisk: true) }
        do {
            switch key {
            case .entity(let name):
                let row = try readContent({ try $0.entity(name) }, ifUnreadable: hideUnread)
                guard let row, try put(row, isOffDisk: false, nil) == .stored else { return }
            case .query(let name):
                guard let row = try readContent({ try $0.query(name) }, ifUnreadable: hideUnread) else { return }
                _ = try put(row, isOffDisk: false)
            }
            try body(memory)
        } catch let error as DiskError where error.isOfValue {
            // It stays hidden.
        }
    }

    func touch(_ key: EntityKey, _ times: RowTimes, asked: Stamp, ifEntityTag tag: String?) throws {
        try edit(.entity(key)) { try $0.touch(.entity(key), times, asked: asked, ifEntityTag: tag) }
    }

    func touch(_ list: inout DiskQuery) throws {
        var touched = list
        try edit(.query(list.key)) { try $0.touch(&touched) }
        list = touched
    }

    func invalidate(_ key: StoredKey, at stamp: Stamp) throws {
        try edit(key) { try $0.invalidate(key, at: stamp) }
    }

    /// Removes an entity, and leaves a tombstone; false if the stored one is newer.
    func bury(_ key: EntityKey, version: Int64?, isOffDisk: Bool) throws -> Bool {
        guard let target = target(.entity(key), isOffDisk: isOffDisk) else { return true }
        guard try target.bury(key, version: version, at: stamp) else { return false }
        // Also while the app has turned the disk tier off: it leaves the disk at once.
        try (target === memory ? disk : memory)?.remove(.entity(key))
        return true
    }

    /// Removes a value that is older than what is shown.
    func removeValue(_ key: EntityKey) throws {
        try memory?.removeValue(key)
        try disk?.removeValue(key)
        hide(.entity(key), belongsOnDisk: true)
    }

    /// Removes a list, and the value that is stored whole under its key.
    func remove(_ key: QueryKey) throws {
        try memory?.remove(.query(key))
        try disk?.remove(.query(key))
        hide(.query(key), belongsOnDisk: true)
        try removeValue(EntityKey(wholeValueOf: key))
    }

    // MARK: Moving

    /// Moves the row of an entity to memory. A tombstone stays, because it has no value.
    func moveToMemory(_ key: EntityKey, _ place: DiskStore.Place) throws {
        guard let row = try entity(key) else { return }
        do { _ = try put(row, isOffDisk: true, place) } catch let error as DiskError where error.isOfValue {
            // It is in memory as long as its decoded value is.
            try removeValue(key)
        }
    }

    /// Removes all content from the disk while the app has turned the disk tier off.
    ///
    /// - Returns: whether there was any.
    func removeWhileOff() throws -> Bool {
        guard isDiskTierOff, let disk, try disk.latestStamp() != nil else { return false }
        try disk.removeAllItems()
        return true
    }

    /// Replaces the hidden rows of a disk that takes changes again by what is in memory and belongs on the disk. A later row, which another
    /// process has stored, stays. What either side has invalidated stays invalid.
    ///
    /// - Returns: the keys whose decoded values count no longer.
    func catchUp() throws -> [StoredKey] {
        guard let disk, let memory else { return [] }
        if hidden.isAll { try disk.removeAllItems() }
        let lacking = hidden.keys
        for (key, entry) in lacking {
            let mine = try placeInMemory(of: key)
            let theirs = try disk.place(of: key)
            // Those of a tier that is off are in memory only.
            let belongsOnDisk = entry.belongsOnDisk && !isDiskTierOff && !core.memoryOnly.contains(key)
            if let theirs, theirs.overtakes(mine?.asked ?? entry.stamp, version: mine?.version) {
                if let mine { try disk.invalidate(key, at: mine.invalid) }
            } else if belongsOnDisk, let mine {
                try moveToDisk(key, mine, invalid: theirs?.invalid ?? .never, disk, memory)
            } else {
                try disk.remove(key)
            }
            if belongsOnDisk { try memory.remove(key) }
        }
        hidden = HiddenRows()
        return Array(lacking.keys)
    }

    private func moveToDisk(
        _ key: StoredKey,
        _ mine: DiskStore.Place,
        invalid: Stamp,
        _ disk: DiskConnection,
        _ memory: DiskConnection
    ) throws {
        do {
            switch key {
            case .entity(let name):
                if let row = try memory.entity(name) {
                    // The higher version of the two stays, and what has invalidated the other holds for it.
                    if try disk.put(row) != .stored { try disk.invalidate(key, at: mine.invalid) }
                    // A row in memory has no fields: the next query builds the indices of the type anew.
                    try disk.setIndices([], ofType: name.type)
                } else if mine.isRemoval {
                    _ = try disk.bury(name, version: mine.version, at: mine.asked)
                }
            case .query(let name):
                guard let row = try memory.query(name) else { return }
                try disk.remove(key)
                try disk.put(row)
            }
            if invalid > mine.invalid { try disk.invalidate(key, at: invalid) }
        } catch  where error.isOfValue {
            // The disk cannot take it: it is fetched again.
            try disk.remove(key)
        }
    }
}

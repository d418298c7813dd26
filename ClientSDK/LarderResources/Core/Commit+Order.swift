import LarderStorage

/// The order of changes. A change is overtaken if what is stored was asked for later; versions decide where both have one. What is stored
/// is stale if it was invalidated after it was asked for.
extension Commit {
    /// The keys that nodes have to look up again.
    var changed: Set<StoredKey> {
        var keys = Set<StoredKey>()
        for key in entities.keys { keys.insert(.entity(key)) }
        for key in queries.keys { keys.insert(.query(key)) }
        for (key, _) in overlays { keys.insert(.entity(key)) }
        for (key, _) in queryOverlays { keys.insert(.query(key)) }
        // Declared lists depend on all entities of their type.
        for type in Set(entities.keys.map(\.type) + overlays.map(\.0.type)) {
            keys.insert(ListChanges.part(ofType: type))
        }
        return keys
    }

    /// Whether what is at a place is newer than this commit.
    func isOvertaken(by place: DiskStore.Place, version: Int64?) -> Bool {
        guard stamp < place.asked else { return false }
        if let version, let known = place.version { return version <= known }
        return true
    }

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

    /// The stamp of an invalidation by this commit of what was asked for at `asked`: later than a change of this commit.
    func mark(for asked: Stamp) -> Stamp { asked == stamp ? stamp.successor : stamp }

    /// The stamps of what this commit has changed and what has no row on the disk (`RowlessStamps`).
    var rowless: [(StoredKey, DiskStore.Place)] {
        let removal = DiskStore.Place(asked: stamp, isRemoval: true)
        var places = partlyReplaced.map { (StoredKey.entity($0), DiskStore.Place(asked: stamp, version: $1)) }
        for key in applied {
            switch key {
            case .entity(let name):
                if case .set(let stored) = entities[name], stored.isOffDisk || unstored.contains(key) {
                    places.append((key, stored.place))
                } else if case .removed = entities[name], unstored.contains(key) {
                    places.append((key, removal))
                }
            case .query(let name):
                if case .set(let stored) = queries[name], stored.seenCommits == StoredEntity.memoryOnly {
                    places.append((key, stored.place))
                } else if case .removed = queries[name] {
                    places.append((key, removal))
                }
            }
        }
        return places
    }
}

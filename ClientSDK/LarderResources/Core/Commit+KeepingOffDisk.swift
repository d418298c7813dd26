import LarderStorage

/// Values that must not be on the disk.
extension Commit {
    /// Removes the rows of entities that are in memory only now: they are older values.
    func removeRows(_ disk: DiskPart) throws {
        try disk.write { transaction in
            for key in changedValues {
                guard case .set(let stored) = entities[key], stored.isMemoryOnly else { continue }
                try transaction.removeValue(key)
            }
        }
    }

    mutating func keepOffDisk(_ key: EntityKey, _ disk: DiskPart) throws {
        var isThere = false
        try disk.write { transaction in
            // A tombstone stays, because it has no value.
            isThere = try transaction.read { reading in try reading.entity(key) } != nil
            if isThere { try transaction.remove(key) }
        }
        hasLeftDisk = hasLeftDisk || isThere
        guard var stored = current(key) else {
            if isThere { entities[key] = .elsewhere }
            return
        }
        stored.isMemoryOnly = true
        stored.seenCommits = StoredEntity.memoryOnly
        entities[key] = .set(stored)
    }

    /// A list, and those of its entities that no other stored list contains.
    mutating func keepOffDisk(_ key: QueryKey, _ disk: DiskPart) throws {
        guard var stored = try current(key, disk) else { return }
        var leaving: [EntityKey] = []
        try disk.write { transaction in
            let isThere = try transaction.read { reading in try reading.query(key) } != nil
            guard isThere else { return }
            hasLeftDisk = true
            try transaction.remove(key)
            leaving = try transaction.read { reading in
                try stored.query.members.keys.filter { try reading.queries(with: $0).isEmpty }
            }
        }
        for entity in leaving { try keepOffDisk(entity, disk) }
        stored.isMemoryOnly = true
        stored.seenCommits = StoredEntity.memoryOnly
        queries[key] = .set(stored)
    }
}

import LarderMemory
import LarderStorage

/// Rows that lack changes of earlier commits, whose disk has failed.
extension Commit {
    /// Writes what memory still has, and removes or invalidates the other rows. Called before the steps.
    mutating func write(_ lacking: UnwrittenKeys.Keys, _ disk: DiskPart) throws {
        if lacking.hasMarks { hasNewMarks = true }
        if lacking.isEverything { return try disk.write { transaction in try transaction.removeAllItems() } }
        for (key, lack) in lacking.lacks {
            do { try write(key, lack, lacking, disk) } catch let error as DiskError where error.isOfValue {
                // Memory alone keeps what can never be stored: otherwise every later commit would fail too.
                note(LarderError(error))
                try remove(key, disk)
            }
        }
    }

    private mutating func write(
        _ key: StoredKey,
        _ lack: UnwrittenKeys.Lack,
        _ lacking: UnwrittenKeys.Keys,
        _ disk: DiskPart
    ) throws {
        switch key {
        case .entity(let key): try write(key, lack, disk)
        case .query(let key):
            // Another process may have stored a newer list.
            try write(key, lack, isNewest: lacking.seenCommits == core.seenCommits, disk)
        }
    }

    private func remove(_ key: StoredKey, _ disk: DiskPart) throws {
        try disk.write { transaction in
            switch key {
            case .entity(let key): try transaction.removeValue(key)
            case .query(let key): try transaction.remove(key)
            }
        }
    }

    private mutating func write(_ key: EntityKey, _ lack: UnwrittenKeys.Lack, _ disk: DiskPart) throws {
        if var stored = core.entities[key], stored.isUnwritten, var payload = stored.unwrittenPayload {
            if lack == .part, let merge = stored.unreadMerge, let row = try row(key, merge, disk),
                let merged = merge.draft(stored.value, row.value)
            {
                // What cannot be encoded is not combined, and does not make the commit fail.
                if let combined = try? merged.encoded() {
                    payload = combined
                    stored.value = merged.value
                    stored.completeness = max(stored.completeness, row.completeness)
                    // The part does not confirm the rest.
                    stored.isInvalidated = true
                    stored.cost = StoredEntity.overhead + payload.count
                    changedValues.insert(key)
                }
            }
            stored.unreadMerge = nil
            // A row that another process has stored meanwhile may be newer.
            guard try write(stored, payload, key, disk) == .stored else {
                entities[key] = .elsewhere
                return
            }
            stored.unwrittenPayload = nil
            stored.seenCommits = seenCommits
            entities[key] = .set(stored)
            return
        }
        try disk.write { transaction in
            switch lack {
            // An older version must not follow a newer one.
            case .content, .part: try transaction.removeValue(key)
            case .mark: try transaction.invalidate(key)
            }
        }
    }

    /// The row with which a part is combined; nil if there is none or it cannot be decoded.
    private func row(_ key: EntityKey, _ merge: EntityDraft.Merge, _ disk: DiskPart) throws -> StoredEntity? {
        var row: DiskEntity?
        try disk.write { transaction in row = try transaction.read { reading in try reading.entity(key) } }
        do { return try row.map { try decoded($0, merge.decode) } } catch {
            // It is replaced.
            return nil
        }
    }

    private mutating func write(
        _ key: QueryKey,
        _ lack: UnwrittenKeys.Lack,
        isNewest: Bool,
        _ disk: DiskPart
    ) throws {
        let known = core.queries.peek(key)
        if isNewest, var stored = known, stored.isUnwritten {
            try disk.write { transaction in
                stored.query = try transaction.store(stored.query)
                if stored.query.isInvalidated || stored.query.isClockUncertain { try transaction.invalidate(key) }
            }
            stored.seenCommits = seenCommits
            queries[key] = .set(stored)
            return
        }
        try disk.write { transaction in
            switch lack {
            case .content, .part: try transaction.remove(key)
            case .mark: try transaction.invalidate(key)
            }
        }
        if known?.isUnwritten ?? false { queries[key] = .forgotten }
    }
}

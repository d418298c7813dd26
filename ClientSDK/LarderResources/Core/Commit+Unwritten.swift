import LarderMemory
import LarderStorage

/// Rows that lack changes of earlier commits, whose disk has failed.
extension Commit {
    /// Writes what memory still has, and removes or invalidates the other rows. Called before the steps; calls no user code.
    mutating func write(_ lacking: UnwrittenKeys.Keys, _ disk: DiskPart) throws {
        if lacking.hasMarks { hasNewMarks = true }
        if lacking.isEverything { return try disk.write { transaction in try transaction.removeAllItems() } }
        for (key, lack) in lacking.lacks {
            switch key {
            case .entity(let key): try write(key, lack, disk)
            case .query(let key):
                // Another process may have stored a newer list.
                try write(key, lack, isNewest: lacking.seenCommits == core.seenCommits, disk)
            }
        }
    }

    private mutating func write(_ key: EntityKey, _ lack: UnwrittenKeys.Lack, _ disk: DiskPart) throws {
        if var stored = core.entities[key], stored.isUnwritten, let payload = stored.unwrittenPayload {
            if stored.lacksRow, lack == .mark {
                var hasRow = false
                try disk.write { transaction in
                    hasRow = try transaction.read { reading in try reading.entity(key) } != nil
                    if hasRow { try transaction.invalidate(key) }
                }
                if hasRow {
                    // The row has more, and the next reply is merged with it.
                    entities[key] = .forgotten
                    return
                }
            }
            stored.lacksRow = false
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
            case .content: try transaction.remove(key)
            case .mark: try transaction.invalidate(key)
            }
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
            case .content: try transaction.remove(key)
            case .mark: try transaction.invalidate(key)
            }
        }
        if known?.isUnwritten ?? false { queries[key] = .forgotten }
    }
}

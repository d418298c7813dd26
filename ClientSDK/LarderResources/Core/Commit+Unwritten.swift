import LarderMemory
import LarderStorage

/// Rows that lack changes of earlier commits, whose disk has failed.
extension Commit {
    /// Writes what memory still has, and removes or invalidates the other rows. Called before the steps.
    mutating func write(_ lacking: UnwrittenKeys.Keys, _ disk: DiskPart) throws {
        if lacking.hasMarks { hasNewMarks = true }
        if lacking.isEverything { return try disk.write { transaction in try transaction.removeAllItems() } }
        stillLacking.seenCommits = lacking.seenCommits
        var problem: DiskError?
        for (key, lack) in lacking.lacks {
            do { try write(key, lack, lacking, disk) } catch let error as DiskError where error.isOfValue {
                // Otherwise every later commit would fail too.
                problem = error
                try leaveInMemory(key, lack, lacking, error, disk)
            }
        }
        if let problem { note(LarderError(problem)) }
    }

    /// Keeps a value in memory alone that the store does not take. If its transform has failed, the next commit tries it again.
    private mutating func leaveInMemory(
        _ key: StoredKey,
        _ lack: UnwrittenKeys.Lack,
        _ lacking: UnwrittenKeys.Keys,
        _ error: DiskError,
        _ disk: DiskPart
    ) throws {
        guard error.code == .tooLarge else {
            stillLacking.note(key, lack)
            stillLacking.withoutRows.insert(key)
            if lacking.withoutRows.contains(key) { return }
            // A part will be combined with its row.
            return try removeOrInvalidate(key, lack == .part ? .mark : lack, disk)
        }
        // From now on it is as a value whose row was evicted.
        try removeOrInvalidate(key, lack, disk)
        switch key {
        case .entity(let key):
            guard var stored = current(key) else { return }
            stored.unwrittenPayload = nil
            stored.unreadMerge = nil
            stored.seenCommits = seenCommits
            entities[key] = .set(stored)
        case .query(let key):
            guard var stored = known(key) else { return }
            stored.seenCommits = seenCommits
            queries[key] = .set(stored)
        }
    }

    /// Makes sure that a row is not taken for the newest content, also after a restart.
    private func removeOrInvalidate(_ key: StoredKey, _ lack: UnwrittenKeys.Lack, _ disk: DiskPart) throws {
        try disk.write { transaction in
            switch (key, lack) {
            // An older version must not follow a newer one.
            case (.entity(let key), .content), (.entity(let key), .part): try transaction.removeValue(key)
            case (.entity(let key), .mark): try transaction.invalidate(key)
            case (.query(let key), .content), (.query(let key), .part): try transaction.remove(key)
            case (.query(let key), .mark): try transaction.invalidate(key)
            }
        }
    }

    /// The keys whose rows still lack a change after the steps.
    var remainingUnwrittenKeys: UnwrittenKeys.Keys {
        var keys = stillLacking
        for key in keys.lacks.keys where isSettled(key) { keys.lacks[key] = nil }
        return keys
    }

    private func isSettled(_ key: StoredKey) -> Bool {
        switch key {
        case .entity(let key):
            switch entities[key] {
            case .set(let stored): !stored.isUnwritten
            case .removed, .forgotten: true
            case .elsewhere, nil: false
            }
        case .query(let key):
            switch queries[key] {
            case .set(let stored): !stored.isUnwritten
            case .removed, .forgotten: true
            case .elsewhere, nil: false
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
        try removeOrInvalidate(.entity(key), lack, disk)
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
                if stored.isInvalid(in: core.clocks.epoch) { try transaction.invalidate(key) }
            }
            stored.seenCommits = seenCommits
            queries[key] = .set(stored)
            return
        }
        try removeOrInvalidate(.query(key), lack, disk)
        if known?.isUnwritten ?? false { queries[key] = .forgotten }
    }
}

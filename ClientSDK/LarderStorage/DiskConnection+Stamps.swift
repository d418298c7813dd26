import LarderSQLite

/// The places of rows in the order of changes.
extension DiskConnection {
    /// What a row says about the order of changes; nil if there is no row.
    func place(_ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) -> DiskStore.Place? {
        let statement = try prepared(.describe)
        defer { statement.reset() }
        try statement.bind(kind.rawValue, at: 1)
        try statement.bind(space, at: 2)
        try statement.bind(key, at: 3)
        guard try statement.step() else { return nil }
        return DiskStore.Place(
            asked: Stamp(rawValue: statement.int64(3)),
            invalid: Stamp(rawValue: statement.int64(4)),
            version: statement.isNull(0) ? nil : statement.int64(0),
            isRemoval: statement.int64(1) & DiskFlags.tombstone != 0
        )
    }

    /// The largest stamp of a row; nil without rows. Reads all of them.
    func latestStamp() throws(SQLiteError) -> Stamp? {
        let statement = try prepared(.latestStamp)
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return Stamp(rawValue: statement.int64(0))
    }

    /// Invalidates an item, so that only what has a later stamp makes it valid.
    ///
    /// - Parameter stamp: nil: later than what has confirmed it.
    func invalidate(_ kind: DiskKind, _ space: String, _ key: String, at stamp: Stamp?) throws(SQLiteError) {
        let statement = try prepared(.invalidate)
        try statement.bind(kind.rawValue, at: 1)
        try statement.bind(space, at: 2)
        try statement.bind(key, at: 3)
        try statement.bind(stamp?.rawValue, at: 4)
        try statement.run()
    }
}

import LarderSQLite

/// The places of rows in the order of changes.
extension DiskConnection {
    /// What a row says about the order of changes; nil if there is no row.
    func place(_ kind: DiskKind, _ space: String, _ key: String) throws(SQLiteError) -> DiskStore.Place? {
        try first(.describe, kind, space, key) { row in
            DiskStore.Place(
                asked: Stamp(rawValue: row.int64(3)),
                invalid: Stamp(rawValue: row.int64(4)),
                version: row.optional(0),
                isRemoval: row.int64(1) & DiskFlags.tombstone != 0
            )
        }
    }

    /// The largest stamp of a row; nil without rows. Reads all of them.
    func latestStamp() throws(SQLiteError) -> Stamp? {
        try first(.latestStamp) { $0.optional(0).map(Stamp.init) } ?? nil
    }
}

import CSQLiteBench
import Larder

/// Reads one entity by SQLite's C interface: the same file and statement as the store, with a copy of the payload.
final class PlainSQLite {
    private var handle: OpaquePointer?
    private var statement: OpaquePointer?

    struct Rejected: Error {}

    init(_ path: String) throws {
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK else { throw Rejected() }
        sqlite3_exec(handle, "PRAGMA cache_size = -2048", nil, nil, nil)
        let sql = """
            SELECT i.row, i.version, i.etag, i.fetched, i.validated, i.expires, i.accessed, i.completeness, i.flags,
                i.sum, i.asked, i.invalid, p.body
            FROM items i LEFT JOIN payloads p ON p.row = i.row WHERE i.kind = ?1 AND i.space = ?2 AND i.key = ?3
            """
        guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK
        else {
            throw Rejected()
        }
    }

    deinit {
        sqlite3_finalize(statement)
        sqlite3_close_v2(handle)
    }

    /// Reads the payload only.
    func payload(_ type: String, _ id: String) -> [UInt8]? { find(type, id) { self.bytes() } }

    /// Reads the entity as the store does, without checksum, transform and access stamps.
    func entity(_ type: String, _ id: String) -> DiskEntity? {
        find(type, id) {
            DiskEntity(
                EntityKey(type: type, id: id),
                payload: self.bytes(),
                version: sqlite3_column_type(self.statement, 1) == SQLITE_NULL
                    ? nil : sqlite3_column_int64(self.statement, 1),
                entityTag: sqlite3_column_text(self.statement, 2).map { String(cString: $0) },
                RowTimes(fetchedAt: self.time(3), validatedAt: self.time(4), expiresAt: self.time(5)),
                DiskEntity.Completeness(rawValue: Int(sqlite3_column_int64(self.statement, 7))) ?? .complete
            )
        }
    }

    private func time(_ column: Int32) -> WallTime {
        WallTime(nanosecondsSinceEpoch: sqlite3_column_int64(statement, column))
    }

    private func bytes() -> [UInt8] {
        guard let start = sqlite3_column_blob(statement, 12) else { return [] }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, 12))))
    }

    private func find<Result>(_ type: String, _ id: String, _ row: () -> Result) -> Result? {
        defer { sqlite3_reset(statement) }
        sqlite3_bind_int64(statement, 1, 0)
        return type.withCString { type in
            id.withCString { id in
                sqlite3_bind_text(statement, 2, type, -1, nil)
                sqlite3_bind_text(statement, 3, id, -1, nil)
                return sqlite3_step(statement) == SQLITE_ROW ? row() : nil
            }
        }
    }
}

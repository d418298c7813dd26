import CSQLiteBench

/// What the store does for one entity, by SQLite's C interface alone: the same file, the same statement, the payload copied.
final class PlainSQLite {
    private var handle: OpaquePointer?
    private var find: OpaquePointer?

    struct Refused: Error {}

    init(_ path: String) throws {
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        guard sqlite3_open_v2(path, &handle, flags, nil) == SQLITE_OK else { throw Refused() }
        sqlite3_exec(handle, "PRAGMA cache_size = -2048", nil, nil, nil)
        let sql = """
            SELECT i.row, i.version, i.etag, i.fetched, i.validated, i.expires, i.accessed, i.completeness, i.source,
                i.flags, i.sum, i.blob, p.body
            FROM items i LEFT JOIN payloads p ON p.row = i.row WHERE i.kind = ?1 AND i.space = ?2 AND i.key = ?3
            """
        guard sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &find, nil) == SQLITE_OK else {
            throw Refused()
        }
    }

    deinit {
        sqlite3_finalize(find)
        sqlite3_close_v2(handle)
    }

    func payload(_ type: String, _ id: String) -> [UInt8]? {
        defer { sqlite3_reset(find) }
        sqlite3_bind_int64(find, 1, 0)
        return type.withCString { type in
            id.withCString { id in
                sqlite3_bind_text(find, 2, type, -1, nil)
                sqlite3_bind_text(find, 3, id, -1, nil)
                guard sqlite3_step(find) == SQLITE_ROW else { return nil }
                guard let start = sqlite3_column_blob(find, 12) else { return [] }
                let count = Int(sqlite3_column_bytes(find, 12))
                return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
            }
        }
    }
}

import LarderSQLite
import LarderTime
import Synchronization

/// A value as it is kept: its bytes, its validator and its times.
struct StoredRecord: Sendable, Hashable {
    var payload: [UInt8]
    var entityTag: String?
    var freshness: Freshness
}

/// The disk tier: records by key in SQLite, made with mode 0600. Safe from any thread; calls wait for each other.
final class DiskTier: Sendable {
    /// `@unchecked Sendable`: made in `init`, and from then on reached under the mutex alone.
    private struct Confined: @unchecked Sendable {
        let database: Database
        let select: Statement
        let upsert: Statement
        let touch: Statement
        let clear: Statement
    }

    private let confined: Mutex<Confined>

    /// - Parameter path: the file; it is made if it is not there, and so is nothing else.
    init(path: String) throws(LarderError) {
        do {
            var options = Database.Options()
            // Everything here can be fetched again: a loss of power may cost the last writes, never the file.
            options.durability = .normal
            let database = try Database(.file(path), options)
            try Self.migrations.run(on: database)
            confined = Mutex(
                Confined(
                    database: database,
                    select: try database.prepare(
                        "SELECT payload, etag, fetched, validated, expires FROM records WHERE key = ?"
                    ),
                    upsert: try database.prepare(
                        """
                        INSERT OR REPLACE INTO records (key, payload, etag, fetched, validated, expires)
                        VALUES (?, ?, ?, ?, ?, ?)
                        """
                    ),
                    touch: try database.prepare("UPDATE records SET validated = ?, expires = ? WHERE key = ?"),
                    clear: try database.prepare("DELETE FROM records")
                )
            )
        } catch {
            throw LarderError(.storage, "The cache at \(path) cannot be opened: \(error)", cause: error)
        }
    }

    func find(_ key: String) throws(LarderError) -> StoredRecord? {
        try run { store in
            defer { store.select.reset() }
            try store.select.bind(key, at: 1)
            guard try store.select.step() else { return nil }
            return StoredRecord(
                payload: store.select.bytes(0),
                entityTag: store.select.isNull(1) ? nil : store.select.text(1),
                freshness: Freshness(
                    fetchedAt: WallTime(nanosecondsSinceEpoch: store.select.int64(2)),
                    validatedAt: WallTime(nanosecondsSinceEpoch: store.select.int64(3)),
                    expiresAt: WallTime(nanosecondsSinceEpoch: store.select.int64(4))
                )
            )
        }
    }

    func store(_ record: StoredRecord, for key: String) throws(LarderError) {
        try run { store in
            try store.upsert.bind(key, at: 1)
            try store.upsert.bind(record.payload, at: 2)
            try store.upsert.bind(record.entityTag, at: 3)
            try store.upsert.bind(record.freshness.fetchedAt.nanosecondsSinceEpoch, at: 4)
            try store.upsert.bind(record.freshness.validatedAt.nanosecondsSinceEpoch, at: 5)
            try store.upsert.bind(record.freshness.expiresAt.nanosecondsSinceEpoch, at: 6)
            try store.upsert.run()
        }
    }

    /// Renews the times of a record that the server said is current; its bytes are not written again.
    func renew(_ key: String, _ freshness: Freshness) throws(LarderError) {
        try run { store in
            try store.touch.bind(freshness.validatedAt.nanosecondsSinceEpoch, at: 1)
            try store.touch.bind(freshness.expiresAt.nanosecondsSinceEpoch, at: 2)
            try store.touch.bind(key, at: 3)
            try store.touch.run()
        }
    }

    func removeAll() throws(LarderError) { try run { try $0.clear.run() } }

    private func run<Result: Sendable>(_ body: (Confined) throws -> Result) throws(LarderError) -> Result {
        do {
            return try confined.withLock { try body($0) }
        } catch {
            throw LarderError(.storage, "The cache cannot be read or written: \(error)", cause: error)
        }
    }

    /// "Lrdc"
    private static var migrations: Migrations {
        Migrations(
            applicationID: 0x4C72_6463,
            [
                Migration("records") { database throws(SQLiteError) in
                    try database.execute(
                        """
                        CREATE TABLE records (
                            key TEXT PRIMARY KEY, payload BLOB NOT NULL, etag TEXT, fetched INTEGER NOT NULL,
                            validated INTEGER NOT NULL, expires INTEGER NOT NULL
                        ) WITHOUT ROWID
                        """
                    )
                }
            ]
        )
    }
}

import LarderSQLite

/// The tables of the store.
///
/// `items` has short rows for entities and lists (kind 0 and 1); content is in `payloads` under the same row number, so that renewing times
/// rewrites no payload. `changed` says when the value of a row was stored: which entities have changed since a list was asked for. `lost`
/// has the latest one of the evicted entities of a type. `fields` are those by which entities are found; of an index for texts, a row for
/// each word. A row of `indices` is an index. The outbox is created first: its pages are at the beginning of the file, and their place depends
/// on nothing that comes later.
enum DiskSchema {
    /// "Lrds"
    static let applicationID: Int32 = 0x4C72_6473

    static var migrations: Migrations {
        Migrations(
            applicationID: applicationID,
            [Migration("outbox and content") { database throws(SQLiteError) in try database.execute(tables) }]
        )
    }

    private static let tables: StaticString =
        """
        CREATE TABLE outbox (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, operation TEXT NOT NULL, scope TEXT NOT NULL,
            coalescing TEXT, idempotency TEXT NOT NULL, state INTEGER NOT NULL, attempts INTEGER NOT NULL,
            enqueued INTEGER NOT NULL, payload BLOB NOT NULL, sum INTEGER NOT NULL
        );
        CREATE TABLE metadata (
            kind INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL,
            PRIMARY KEY (kind, key)
        ) WITHOUT ROWID;

        CREATE TABLE items (
            row INTEGER PRIMARY KEY, kind INTEGER NOT NULL, space TEXT NOT NULL, key TEXT NOT NULL,
            version INTEGER, etag TEXT, fetched INTEGER NOT NULL, validated INTEGER NOT NULL,
            expires INTEGER NOT NULL, remove_at INTEGER NOT NULL, accessed INTEGER NOT NULL,
            completeness INTEGER NOT NULL, flags INTEGER NOT NULL,
            size INTEGER NOT NULL, sum INTEGER NOT NULL, asked INTEGER NOT NULL DEFAULT 0,
            invalid INTEGER NOT NULL DEFAULT 0, changed INTEGER NOT NULL DEFAULT 0
        );
        CREATE UNIQUE INDEX items_key ON items (kind, space, key);
        CREATE INDEX items_accessed ON items (accessed);
        CREATE INDEX items_remove_at ON items (remove_at);
        CREATE INDEX items_changed ON items (space, changed) WHERE kind = 0;
        CREATE TABLE payloads (row INTEGER PRIMARY KEY, body BLOB NOT NULL);
        CREATE TABLE members (
            query INTEGER NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
            mark INTEGER, note TEXT, PRIMARY KEY (query, position)
        ) WITHOUT ROWID;
        CREATE INDEX members_entity ON members (type, id);
        CREATE TABLE totals (
            id INTEGER PRIMARY KEY CHECK (id = 1), bytes INTEGER NOT NULL, items INTEGER NOT NULL
        );
        INSERT INTO totals VALUES (1, 0, 0);
        CREATE TABLE indices (
            field INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (type, name)
        );
        CREATE TABLE fields (field INTEGER NOT NULL, value, row INTEGER NOT NULL);
        CREATE INDEX fields_value ON fields (field, value, row);
        CREATE INDEX fields_row ON fields (row, field);
        CREATE TABLE lost (type TEXT PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;

        CREATE TRIGGER items_inserted AFTER INSERT ON items BEGIN
            UPDATE totals SET bytes = bytes + new.size, items = items + 1;
        END;
        CREATE TRIGGER items_deleted AFTER DELETE ON items BEGIN
            UPDATE totals SET bytes = bytes - old.size, items = items - 1;
            DELETE FROM payloads WHERE row = old.row;
            DELETE FROM members WHERE query = old.row;
            DELETE FROM fields WHERE row = old.row;
        END;
        CREATE TRIGGER items_resized AFTER UPDATE OF size ON items WHEN new.size <> old.size BEGIN
            UPDATE totals SET bytes = bytes + new.size - old.size;
        END;
        CREATE TRIGGER items_buried AFTER UPDATE OF flags ON items WHEN new.flags & 1 BEGIN
            DELETE FROM fields WHERE row = new.row;
        END;
        """
}

/// The kinds of rows in `items`.
enum DiskKind: Int64, Sendable {
    case entity = 0
    case query = 1
}

/// The bits of `items.flags`.
enum DiskFlags {
    /// The entity was deleted in the row's version; nothing older may replace it.
    static let tombstone: Int64 = 1
    /// The bits of `RowTimes.Terms`.
    static let terms: Int64 = 24
}

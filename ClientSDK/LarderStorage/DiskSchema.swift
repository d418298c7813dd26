import LarderSQLite

/// The tables of the store and their migrations.
///
/// `items` has short rows for entities, lists and records (kind 0, 1, 2); large content is in `payloads` under the same row number
/// or in a file, so that renewing times rewrites no payload. The outbox is created first: its pages are at the beginning of the
/// file, and their place depends on nothing that comes later.
enum DiskSchema {
    /// "Lrds"
    static let applicationID: Int32 = 0x4C72_6473

    /// The migrations. A released step is never changed.
    static var migrations: Migrations {
        Migrations(applicationID: applicationID, [first, lists, stamps, indices, changes, indexing])
    }

    private static var first: Migration {
        Migration("items, outbox") { database throws(SQLiteError) in
            try database.execute(
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
                    completeness INTEGER NOT NULL, source INTEGER NOT NULL, flags INTEGER NOT NULL,
                    size INTEGER NOT NULL, sum INTEGER NOT NULL, blob TEXT
                );
                CREATE UNIQUE INDEX items_key ON items (kind, space, key);
                CREATE INDEX items_accessed ON items (accessed);
                CREATE INDEX items_remove_at ON items (remove_at);
                CREATE TABLE payloads (row INTEGER PRIMARY KEY, body BLOB NOT NULL);
                CREATE TABLE members (
                    query INTEGER NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
                    PRIMARY KEY (query, position)
                ) WITHOUT ROWID;
                CREATE INDEX members_entity ON members (type, id);
                CREATE TABLE blobs (hash TEXT PRIMARY KEY, size INTEGER NOT NULL, refs INTEGER NOT NULL) WITHOUT ROWID;
                CREATE INDEX blobs_unused ON blobs (hash) WHERE refs = 0;
                CREATE TABLE totals (
                    id INTEGER PRIMARY KEY CHECK (id = 1), bytes INTEGER NOT NULL, items INTEGER NOT NULL
                );
                INSERT INTO totals VALUES (1, 0, 0);

                CREATE TRIGGER items_inserted AFTER INSERT ON items BEGIN
                    UPDATE totals SET bytes = bytes + new.size, items = items + 1;
                    UPDATE blobs SET refs = refs + 1 WHERE hash = new.blob;
                END;
                CREATE TRIGGER items_deleted AFTER DELETE ON items BEGIN
                    UPDATE totals SET bytes = bytes - old.size, items = items - 1;
                    UPDATE blobs SET refs = refs - 1 WHERE hash = old.blob;
                    DELETE FROM payloads WHERE row = old.row;
                    DELETE FROM members WHERE query = old.row;
                END;
                CREATE TRIGGER items_resized AFTER UPDATE OF size ON items WHEN new.size <> old.size BEGIN
                    UPDATE totals SET bytes = bytes + new.size - old.size;
                END;
                CREATE TRIGGER items_reblobbed AFTER UPDATE OF blob ON items WHEN new.blob IS NOT old.blob BEGIN
                    UPDATE blobs SET refs = refs - 1 WHERE hash = old.blob;
                    UPDATE blobs SET refs = refs + 1 WHERE hash = new.blob;
                END;
                CREATE TRIGGER blobs_counted AFTER UPDATE OF refs ON blobs WHEN (new.refs = 0) <> (old.refs = 0) BEGIN
                    UPDATE totals SET bytes = bytes + CASE new.refs WHEN 0 THEN -new.size ELSE new.size END;
                END;
                """
            )
        }
    }

    /// Positions have gaps, and members have marks. Lists are fetched again.
    private static var lists: Migration {
        Migration("members with marks") { database throws(SQLiteError) in
            try database.execute(
                """
                DROP TABLE members;
                CREATE TABLE members (
                    query INTEGER NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, id TEXT NOT NULL,
                    mark INTEGER, note TEXT, PRIMARY KEY (query, position)
                ) WITHOUT ROWID;
                CREATE INDEX members_entity ON members (type, id);
                DELETE FROM items WHERE kind = 1;
                """
            )
        }
    }

    /// Entities keep their values and are confirmed again, because invalidations had no stamps. Lists are fetched again.
    private static var stamps: Migration {
        Migration("stamps") { database throws(SQLiteError) in
            try database.execute(
                """
                DELETE FROM items WHERE kind = 1;
                ALTER TABLE items ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE items ADD COLUMN invalid INTEGER NOT NULL DEFAULT 0;
                UPDATE items SET invalid = 1, flags = flags & ~2 WHERE flags & 1 = 0;
                DELETE FROM metadata WHERE kind = 0 AND key = 'larder.invalidations';
                """
            )
        }
    }

    /// Fields by which entities are found; of an index for texts, a row for each word. A row of `indices` is an index.
    private static var indices: Migration {
        Migration("indices of entities") { database throws(SQLiteError) in
            try database.execute(
                """
                CREATE TABLE indices (
                    field INTEGER PRIMARY KEY, type TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (type, name)
                );
                CREATE TABLE fields (field INTEGER NOT NULL, value, row INTEGER NOT NULL);
                CREATE INDEX fields_value ON fields (field, value, row);
                CREATE INDEX fields_row ON fields (row, field);
                CREATE TRIGGER items_unindexed AFTER DELETE ON items BEGIN
                    DELETE FROM fields WHERE row = old.row;
                END;
                CREATE TRIGGER items_buried AFTER UPDATE OF flags ON items WHEN new.flags & 1 BEGIN
                    DELETE FROM fields WHERE row = new.row;
                END;
                """
            )
        }
    }

    /// When the value of a row was stored: which entities have changed since a list was asked for. `lost` has the latest one of the evicted
    /// entities of a type. Lists are fetched again.
    private static var changes: Migration {
        Migration("changes") { database throws(SQLiteError) in
            try database.execute(
                """
                DELETE FROM items WHERE kind = 1;
                DELETE FROM metadata WHERE kind = 0 AND (key = 'larder.lists' OR key GLOB 'larder.list.*');
                ALTER TABLE items ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
                CREATE INDEX items_changed ON items (space, changed) WHERE kind = 0;
                CREATE TABLE lost (type TEXT PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;
                """
            )
        }
    }

    /// How far an index was built: the identifier of the last entity that it has; NULL if it was built.
    private static var indexing: Migration {
        Migration("building of indices") { database throws(SQLiteError) in
            try database.execute("ALTER TABLE indices ADD COLUMN through TEXT;")
        }
    }
}

/// The kinds of rows in `items`.
enum DiskKind: Int64, Sendable {
    case entity = 0
    case query = 1
    case record = 2
}

/// The bits of `items.flags`.
enum DiskFlags {
    /// The entity was deleted in the row's version; nothing older may replace it.
    static let tombstone: Int64 = 1
    /// The clock was set back since the times were taken.
    static let clockUncertain: Int64 = 4
    /// The bits of `DiskEntity.Terms`.
    static let terms: Int64 = 24

    static func of(_ terms: DiskEntity.Terms, isClockUncertain: Bool) -> Int64 {
        terms.rawValue & Self.terms | (isClockUncertain ? clockUncertain : 0)
    }
}

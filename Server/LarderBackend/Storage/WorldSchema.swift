import LarderCoding
package import LarderSQLite

/// The tables of a world.
///
/// The members of an entity that do not depend on its reader are stored as JSON in the form that is sent (`head`: an object without its
/// closing brace), so that a page is a scan and some copying instead of an encoding of every field.
package enum WorldSchema {
    /// The application ID of a database file: "Lard" in ASCII.
    static let applicationID: Int32 = 0x4C61_7264

    /// Differs between any two versions of the schema.
    package static var fingerprint: UInt64 { ContentHash.hash64(Array(tables.description.utf8).span) }

    package static var migrations: Migrations {
        Migrations(
            applicationID: applicationID,
            [Migration("world") { database throws(SQLiteError) in try database.execute(tables) }]
        )
    }

    /// The columns of accounts, which are in their JSON, as a table for a `FROM`. It is no view, because a database without trust in its
    /// schema runs no functions of JSON in one.
    static let accounts: SQLText = """
        (SELECT id, nullif(list, 0) AS owner, json_extract(json, '$.balance.minorUnits') AS balance,
            json_extract(json, '$.balance.currency') AS currency
        FROM (SELECT id, list, CAST(head AS TEXT) || '}' AS json FROM entities WHERE kind = 3))
        """

    private static let tables: StaticString = """
        CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

        -- kind: as in EntityKind. list: the list that the entity is in. name: what identifies it there.
        CREATE TABLE entities (
            position INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, id INTEGER NOT NULL, list INTEGER NOT NULL,
            name TEXT, head BLOB NOT NULL, deleted INTEGER NOT NULL, version INTEGER NOT NULL, updated INTEGER NOT NULL,
            UNIQUE (kind, id)
        );
        CREATE INDEX entities_by_list ON entities (kind, list, id);
        CREATE INDEX entities_by_name ON entities (kind, list, name) WHERE name IS NOT NULL;
        CREATE INDEX tombstones ON entities (updated) WHERE deleted = 1;

        CREATE TABLE likes (
            user INTEGER NOT NULL, post INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (user, post)
        ) WITHOUT ROWID;
        CREATE INDEX likes_by_post ON likes (post);
        CREATE TABLE members (
            user INTEGER NOT NULL, conversation INTEGER NOT NULL, PRIMARY KEY (user, conversation)
        ) WITHOUT ROWID;

        CREATE TABLE transfers (
            id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL, target INTEGER NOT NULL,
            amount INTEGER NOT NULL CHECK (amount > 0), currency TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL
        );
        CREATE TABLE entries (
            id INTEGER PRIMARY KEY AUTOINCREMENT, transfer INTEGER NOT NULL REFERENCES transfers (id),
            account INTEGER NOT NULL, amount INTEGER NOT NULL CHECK (amount <> 0),
            balance_after INTEGER NOT NULL, at INTEGER NOT NULL
        );
        CREATE INDEX entries_by_account ON entries (account, id);
        CREATE INDEX entries_by_transfer ON entries (transfer);

        CREATE TABLE sessions (
            id INTEGER PRIMARY KEY AUTOINCREMENT, user INTEGER NOT NULL, created INTEGER NOT NULL
        );
        -- A session has a grant for each renewal, so that a renewal can be repeated and two processes can go on from one token.
        -- exchanged: when the refresh token of the grant was first exchanged, in milliseconds; NULL while it was not.
        CREATE TABLE grants (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            parent INTEGER, access BLOB UNIQUE, access_expires INTEGER,
            refresh BLOB UNIQUE, refresh_expires INTEGER, exchanged INTEGER
        );
        CREATE INDEX grants_by_session ON grants (session);
        CREATE INDEX grants_by_parent ON grants (parent) WHERE parent IS NOT NULL;

        CREATE TABLE idempotency (
            user INTEGER NOT NULL, route TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL,
            head BLOB NOT NULL, body BLOB NOT NULL, created INTEGER NOT NULL,
            PRIMARY KEY (user, route, key)
        ) WITHOUT ROWID;
        CREATE INDEX idempotency_by_age ON idempotency (created);

        -- The user's own collections; none for the demo backend. numbered: whether the server gives numbers as identifiers.
        -- last_number: the greatest number that is or was an identifier. None is given again.
        CREATE TABLE collections (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, numbered INTEGER NOT NULL, singular INTEGER NOT NULL,
            last_number INTEGER NOT NULL
        );

        CREATE TABLE uploads (
            id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, media_type TEXT NOT NULL, length INTEGER,
            size INTEGER NOT NULL, image BLOB, created INTEGER NOT NULL, tag TEXT
        );
        CREATE INDEX uploads_incomplete ON uploads (owner, created) WHERE image IS NULL;
        CREATE TABLE upload_pieces (
            upload INTEGER NOT NULL REFERENCES uploads (id), start INTEGER NOT NULL, bytes BLOB NOT NULL,
            PRIMARY KEY (upload, start)
        );
        """
}

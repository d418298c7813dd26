import LarderCoding
import LarderSQLite

/// The tables of a world. A migration that was released is never edited: a later one is added after it.
///
/// What changes often stands in columns. What seldom changes stands as the JSON that leaves the server (`head`: an object
/// without its closing brace), so that a page is a scan and some copying, not an encoding of every field.
enum WorldSchema {
    /// Marks a database file as Larder's own ("Lard").
    static let applicationID: Int32 = 0x4C61_7264

    /// Differs between any two versions of the schema.
    static var fingerprint: UInt64 {
        let text = version1.description + version2.description + version3.description
        return ContentHash.hash64(Array(text.utf8).span, seed: FeedChunkLayout.format)
    }

    static var migrations: Migrations {
        Migrations(applicationID: applicationID, steps)
    }

    static var steps: [Migration] {
        [
            Migration("world") { database throws(SQLiteError) in try database.execute(version1) },
            Migration("feed chunks") { database throws(SQLiteError) in
                try database.execute(version2)
                try FeedChunkTable.rebuild(in: database)
            },
            Migration("grants") { database throws(SQLiteError) in try database.execute(version3) },
        ]
    }

    /// Tables that say once more what others say, for those who read.
    static let derivedTables: Set<String> = [FeedChunkTable.name]

    private static let version2: StaticString = "CREATE TABLE feed_chunks (id INTEGER PRIMARY KEY, posts BLOB NOT NULL)"

    /// A session has a grant for each renewal, so that a renewal can be repeated and two processes can go on from one token.
    /// `exchanged` is when the refresh token of a grant was first exchanged, in milliseconds; NULL while it was not.
    private static let version3: StaticString = """
        CREATE TABLE signed_in (
            id INTEGER PRIMARY KEY AUTOINCREMENT, user INTEGER NOT NULL REFERENCES profiles (id),
            created INTEGER NOT NULL
        );
        CREATE TABLE grants (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session INTEGER NOT NULL REFERENCES signed_in (id) ON DELETE CASCADE,
            parent INTEGER, access BLOB UNIQUE, access_expires INTEGER,
            refresh BLOB UNIQUE, refresh_expires INTEGER, exchanged INTEGER
        );
        CREATE INDEX grants_by_session ON grants (session);
        CREATE INDEX grants_by_parent ON grants (parent) WHERE parent IS NOT NULL;
        INSERT INTO signed_in SELECT id, user, created FROM sessions;
        INSERT INTO grants (session, access, access_expires, refresh, refresh_expires)
            SELECT id, access, access_expires, refresh, refresh_expires FROM sessions;
        INSERT INTO grants (session, refresh, refresh_expires, exchanged)
            SELECT spent.session, spent.refresh, sessions.refresh_expires, 0
            FROM spent_refresh_tokens AS spent JOIN sessions ON sessions.id = spent.session;
        DROP TABLE spent_refresh_tokens;
        DROP TABLE sessions;
        ALTER TABLE signed_in RENAME TO sessions;
        """

    private static let version1: StaticString = """
        CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

        CREATE TABLE lineage (instance INTEGER PRIMARY KEY, until INTEGER NOT NULL);

        CREATE TABLE profiles (
            id INTEGER PRIMARY KEY, handle TEXT NOT NULL UNIQUE, head BLOB NOT NULL,
            version INTEGER NOT NULL, updated INTEGER NOT NULL
        );

        CREATE TABLE posts (
            id INTEGER PRIMARY KEY AUTOINCREMENT, author INTEGER NOT NULL REFERENCES profiles (id), head BLOB NOT NULL,
            likes INTEGER NOT NULL, version INTEGER NOT NULL, updated INTEGER NOT NULL
        );
        CREATE INDEX posts_by_author ON posts (author, id);
        CREATE TABLE likes (
            user INTEGER NOT NULL, post INTEGER NOT NULL REFERENCES posts (id) ON DELETE CASCADE, at INTEGER NOT NULL,
            PRIMARY KEY (user, post)
        ) WITHOUT ROWID;
        CREATE INDEX likes_by_post ON likes (post);

        CREATE TABLE accounts (
            id INTEGER PRIMARY KEY, owner INTEGER REFERENCES profiles (id), name TEXT NOT NULL, kind TEXT NOT NULL,
            currency TEXT NOT NULL, status TEXT NOT NULL, opened INTEGER NOT NULL, balance INTEGER NOT NULL,
            version INTEGER NOT NULL, updated INTEGER NOT NULL
        );
        CREATE INDEX accounts_by_owner ON accounts (owner, id);
        CREATE TABLE transfers (
            id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL REFERENCES accounts (id),
            target INTEGER NOT NULL REFERENCES accounts (id), amount INTEGER NOT NULL CHECK (amount > 0),
            currency TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL
        );
        CREATE TABLE entries (
            id INTEGER PRIMARY KEY AUTOINCREMENT, transfer INTEGER NOT NULL REFERENCES transfers (id),
            account INTEGER NOT NULL REFERENCES accounts (id), amount INTEGER NOT NULL CHECK (amount <> 0),
            balance_after INTEGER NOT NULL, at INTEGER NOT NULL
        );
        CREATE INDEX entries_by_account ON entries (account, id);
        CREATE INDEX entries_by_transfer ON entries (transfer);

        CREATE TABLE conversations (
            id INTEGER PRIMARY KEY, head BLOB NOT NULL, last_message INTEGER,
            version INTEGER NOT NULL, updated INTEGER NOT NULL
        );
        CREATE TABLE members (
            user INTEGER NOT NULL, conversation INTEGER NOT NULL REFERENCES conversations (id),
            PRIMARY KEY (user, conversation)
        ) WITHOUT ROWID;
        CREATE INDEX members_by_conversation ON members (conversation, user);
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT, conversation INTEGER NOT NULL REFERENCES conversations (id),
            author INTEGER NOT NULL, client_id TEXT, head BLOB NOT NULL, deleted INTEGER NOT NULL,
            version INTEGER NOT NULL, updated INTEGER NOT NULL
        );
        CREATE INDEX messages_by_conversation ON messages (conversation, id);
        CREATE UNIQUE INDEX messages_by_client_id ON messages (conversation, author, client_id)
            WHERE client_id IS NOT NULL;

        CREATE TABLE sessions (
            id INTEGER PRIMARY KEY AUTOINCREMENT, user INTEGER NOT NULL REFERENCES profiles (id),
            access BLOB NOT NULL UNIQUE, access_expires INTEGER, refresh BLOB UNIQUE, refresh_expires INTEGER,
            created INTEGER NOT NULL
        );
        CREATE TABLE spent_refresh_tokens (
            refresh BLOB PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE
        ) WITHOUT ROWID;

        CREATE TABLE idempotency (
            user INTEGER NOT NULL, route TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL,
            status INTEGER NOT NULL, fields BLOB NOT NULL, body BLOB NOT NULL, created INTEGER NOT NULL,
            PRIMARY KEY (user, route, key)
        ) WITHOUT ROWID;
        CREATE INDEX idempotency_by_age ON idempotency (created);

        CREATE TABLE changes (
            position INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, entity INTEGER NOT NULL,
            deleted INTEGER NOT NULL, audience INTEGER NOT NULL, at INTEGER NOT NULL, version INTEGER NOT NULL,
            UNIQUE (kind, entity)
        );
        CREATE INDEX tombstones ON changes (at) WHERE deleted = 1;
        """
}

import LarderCoding
package import LarderSQLite

/// The tables of a world. A released migration is never edited: changes are added as a new one.
///
/// Frequently changed members are columns. The others are stored as JSON in the form that is sent (`head`: an object without
/// its closing brace), so that a page is a scan and some copying instead of an encoding of every field.
package enum WorldSchema {
    /// The application ID of a database file: "Lard" in ASCII.
    static let applicationID: Int32 = 0x4C61_7264

    /// Differs between any two versions of the schema.
    package static var fingerprint: UInt64 {
        ContentHash.hash64(
            Array(
                (tables.description + tasks.description + documents.description + counters.description
                    + taskFilters.description + uploads.description + uploadTags.description).utf8
            ).span
        )
    }

    package static var migrations: Migrations {
        Migrations(
            applicationID: applicationID,
            [
                Migration("world") { database throws(SQLiteError) in try database.execute(tables) },
                Migration("tasks") { database throws(SQLiteError) in try database.execute(tasks) },
                Migration("documents") { database throws(SQLiteError) in try database.execute(documents) },
                Migration("document counters") { database throws(SQLiteError) in try database.execute(counters) },
                Migration("task filters") { database throws(SQLiteError) in try database.execute(taskFilters) },
                Migration("uploads") { database throws(SQLiteError) in try database.execute(uploads) },
                Migration("upload tags") { database throws(SQLiteError) in try database.execute(uploadTags) },
            ]
        )
    }

    private static let tables: StaticString = """
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
            created INTEGER NOT NULL
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

        CREATE TABLE changes (
            position INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL, entity INTEGER NOT NULL,
            deleted INTEGER NOT NULL, audience INTEGER NOT NULL, at INTEGER NOT NULL, version INTEGER NOT NULL,
            UNIQUE (kind, entity)
        );
        CREATE INDEX tombstones ON changes (at) WHERE deleted = 1;
        """

    /// due: days since 1970-01-01, or `TaskDate.none` without a date, so that these tasks sort last.
    private static let tasks: StaticString = """
        CREATE TABLE tasks (
            id INTEGER PRIMARY KEY AUTOINCREMENT, creator INTEGER NOT NULL REFERENCES profiles (id), client_id TEXT,
            head BLOB NOT NULL, status INTEGER NOT NULL, assignee INTEGER REFERENCES profiles (id),
            due INTEGER NOT NULL, version INTEGER NOT NULL, updated INTEGER NOT NULL
        );
        CREATE INDEX tasks_by_due ON tasks (due, id);
        CREATE UNIQUE INDEX tasks_by_client_id ON tasks (creator, client_id) WHERE client_id IS NOT NULL;
        """

    /// The user's own collections; empty for the demo backend.
    ///
    /// numbers: whether the server assigns numbers as identifiers. A deleted document keeps its identifier, for the change feed.
    private static let documents: StaticString = """
        CREATE TABLE collections (name TEXT PRIMARY KEY, numbers INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE documents (
            number INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL REFERENCES collections (name),
            id TEXT NOT NULL, is_number INTEGER NOT NULL, place INTEGER NOT NULL, json BLOB NOT NULL,
            deleted INTEGER NOT NULL, version INTEGER NOT NULL, updated INTEGER NOT NULL,
            UNIQUE (collection, id)
        );
        CREATE INDEX documents_by_place ON documents (collection, place) WHERE deleted = 0;
        """

    /// last_place, last_number: the greatest ones that a document of the collection ever had. Neither is given again.
    private static let counters: StaticString = """
        ALTER TABLE collections ADD COLUMN last_place INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE collections ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0;
        UPDATE collections SET
            last_place = ifnull((SELECT max(place) FROM documents WHERE collection = name), 0),
            last_number = ifnull(
                (SELECT max(CAST(id AS INTEGER)) FROM documents WHERE collection = name AND is_number = 1), 0
            );
        """

    private static let taskFilters: StaticString = """
        CREATE INDEX tasks_by_status ON tasks (status, due, id);
        CREATE INDEX tasks_by_assignee ON tasks (assignee, due, id);
        """

    private static let uploads: StaticString = """
        CREATE TABLE uploads (
            id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, media_type TEXT NOT NULL, length INTEGER,
            size INTEGER NOT NULL, image BLOB, created INTEGER NOT NULL
        );
        CREATE INDEX uploads_incomplete ON uploads (owner, created) WHERE image IS NULL;
        CREATE TABLE upload_pieces (
            upload INTEGER NOT NULL REFERENCES uploads (id), start INTEGER NOT NULL, bytes BLOB NOT NULL,
            PRIMARY KEY (upload, start)
        );
        """

    /// Images that were completed before have none, and are hashed when they are read.
    private static let uploadTags: StaticString = "ALTER TABLE uploads ADD COLUMN tag TEXT;"
}

import LarderSQLite

/// The statements of the store. A connection prepares each on first use, and keeps it.
enum DiskStatement: Int, CaseIterable {
    case begin, beginWriting, commit, dataVersion
    case find, findMembers, findListed, changedSince
    case upsert, putPayload, dropPayload, describe, bury
    case dropMember, putMember
    case findTimes, touch
    case remove, removeValue, removeRow, removeSpace, removeAll
    case invalidate
    case queryKeys, queriesWith, entityIDs, spaces
    case findMetadata, putMetadata, dropMetadata
    case latestStamp, totals, leastRecent, drop, expire, stamp
    case findLost, noteLost, noteExpired
    case outboxAppend, outboxList, outboxUpdate, outboxRemove
    case outboxDown, metadataAll, outboxRestore
    case outboxNotes, outboxSequence, dropOutboxSequence, putOutboxSequence
    case indices, addIndex, dropIndex, dropFields, putField
    case fieldIs, fieldBetween, keyOfRow, fieldOfRow, fieldsAscending, fieldsDescending

    /// The columns of `DiskRow`, and the payload.
    private static let row: SQLText =
        """
        i.row, i.version, i.etag, i.fetched, i.validated, i.expires, i.accessed, i.completeness, i.flags, i.sum, i.asked,
        i.invalid, i.changed, p.body
        """

    /// The SQL text, fixed at compile time: values are bound and never inserted into it.
    var sql: SQLText {
        switch self {
        case .begin: "BEGIN DEFERRED"
        case .beginWriting: "BEGIN IMMEDIATE"
        case .commit: "COMMIT"
        case .dataVersion: "PRAGMA data_version"

        case .find:
            """
            SELECT \(Self.row)
            FROM items i LEFT JOIN payloads p ON p.row = i.row WHERE i.kind = ?1 AND i.space = ?2 AND i.key = ?3
            """
        case .findMembers: "SELECT position, type, id, mark, note FROM members WHERE query = ?1 ORDER BY position"
        case .findListed:
            """
            SELECT \(Self.row)
            FROM members m LEFT JOIN items i ON i.kind = 0 AND i.space = m.type AND i.key = m.id
            LEFT JOIN payloads p ON p.row = i.row WHERE m.query = ?1 ORDER BY m.position
            """
        case .changedSince:
            """
            SELECT key FROM items
            WHERE kind = 0 AND space = ?1 AND changed > ?2 AND changed <> ?3 AND flags & 1 = 0 ORDER BY key
            """

        // The guard against older versions is in the statement itself, so that there is no race.
        case .upsert:
            """
            INSERT INTO items (kind, space, key, version, etag, fetched, validated, expires, remove_at, accessed,
                completeness, flags, size, sum, asked, invalid, changed)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
            ON CONFLICT (kind, space, key) DO UPDATE SET version = excluded.version, etag = excluded.etag,
                fetched = excluded.fetched, validated = excluded.validated, expires = excluded.expires,
                remove_at = excluded.remove_at, accessed = excluded.accessed, completeness = excluded.completeness,
                flags = excluded.flags, size = excluded.size, sum = excluded.sum,
                asked = CASE excluded.asked WHEN 0 THEN max(asked, invalid) ELSE excluded.asked END,
                invalid = max(invalid, excluded.invalid), changed = excluded.changed
            WHERE CASE WHEN flags & 1 THEN version IS NULL AND excluded.asked >= asked OR excluded.version > version
                ELSE version IS NULL OR excluded.version IS NULL OR excluded.version > version
                    OR (excluded.version = version AND excluded.completeness >= completeness) END
            RETURNING row
            """
        case .putPayload:
            "INSERT INTO payloads (row, body) VALUES (?1, ?2) ON CONFLICT (row) DO UPDATE SET body = excluded.body"
        case .dropPayload: "DELETE FROM payloads WHERE row = ?1"
        case .describe:
            "SELECT version, flags, completeness, asked, invalid FROM items WHERE kind = ?1 AND space = ?2 AND key = ?3"
        case .bury:
            """
            INSERT INTO items (kind, space, key, version, fetched, validated, expires, remove_at, accessed,
                completeness, flags, size, sum, asked)
            VALUES (0, ?1, ?2, ?3, ?4, ?4, ?4, ?5, ?6, 0, 1, ?7, ?8, ?9)
            ON CONFLICT (kind, space, key) DO UPDATE SET version = excluded.version, etag = NULL,
                fetched = excluded.fetched, validated = excluded.validated, expires = excluded.expires,
                remove_at = excluded.remove_at, completeness = 0, flags = 1,
                size = excluded.size, sum = excluded.sum, asked = max(asked, excluded.asked)
            WHERE version IS NULL OR version <= excluded.version
            RETURNING row
            """
        case .dropMember: "DELETE FROM members WHERE query = ?1 AND position = ?2"
        case .putMember:
            """
            INSERT INTO members (query, position, type, id, mark, note) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT (query, position) DO UPDATE SET type = excluded.type, id = excluded.id, mark = excluded.mark,
                note = excluded.note
            """

        case .findTimes:
            """
            SELECT row, version, fetched, validated, expires, sum, etag FROM items
            WHERE kind = ?1 AND space = ?2 AND key = ?3 AND flags & 1 = 0
            """
        case .touch:
            """
            UPDATE items SET validated = ?2, expires = ?3, remove_at = ?4, sum = ?5, flags = flags & ~24 | ?6,
                asked = max(asked, coalesce(?7, invalid))
            WHERE row = ?1
            """
        case .remove: "DELETE FROM items WHERE kind = ?1 AND space = ?2 AND key = ?3"
        case .removeValue: "DELETE FROM items WHERE kind = ?1 AND space = ?2 AND key = ?3 AND flags & 1 = 0"
        case .removeRow: "DELETE FROM items WHERE row = ?1 AND sum = ?2"
        case .removeSpace: "DELETE FROM items WHERE kind = ?1 AND space = ?2"
        case .removeAll: "DELETE FROM items"
        case .invalidate:
            """
            UPDATE items SET invalid = max(invalid, coalesce(?4 + (asked = ?4), asked + 1))
            WHERE kind = ?1 AND space = ?2 AND key = ?3
            """
        case .queryKeys: "SELECT space, key FROM items WHERE kind = 1 AND space = ?1 ORDER BY key"
        case .entityIDs: "SELECT key FROM items WHERE kind = 0 AND space = ?1 AND flags & 1 <= ?2 ORDER BY key"
        case .spaces:
            "SELECT DISTINCT space FROM items WHERE kind = CAST(?1 AS INTEGER) AND flags & 1 = 0 ORDER BY space"
        case .queriesWith:
            """
            SELECT DISTINCT i.space, i.key FROM members m JOIN items i ON i.row = m.query
            WHERE m.type = ?1 AND m.id = ?2 ORDER BY i.space, i.key
            """

        case .findMetadata: "SELECT value, sum FROM metadata WHERE kind = ?1 AND key = ?2"
        case .putMetadata:
            """
            INSERT INTO metadata (kind, key, value, sum) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, sum = excluded.sum
            """
        case .dropMetadata: "DELETE FROM metadata WHERE kind = ?1 AND key = ?2"

        case .latestStamp: "SELECT max(max(asked, invalid)) FROM items"

        case .totals: "SELECT bytes, items FROM totals"
        case .leastRecent: "SELECT row FROM items ORDER BY accessed LIMIT 1"
        case .drop: "DELETE FROM items WHERE row = ?1"
        case .findLost: "SELECT changed FROM lost WHERE type = ?1"
        case .noteLost:
            """
            INSERT INTO lost SELECT space, changed FROM items WHERE row = ?1 AND kind = 0 AND changed > 0
            ON CONFLICT (type) DO UPDATE SET changed = max(changed, excluded.changed)
            """
        case .noteExpired:
            """
            INSERT INTO lost SELECT space, max(changed) FROM items
            WHERE remove_at <= ?1 AND kind = 0 AND changed > 0 GROUP BY space
            ON CONFLICT (type) DO UPDATE SET changed = max(changed, excluded.changed)
            """
        // The index finds them and the row itself is checked, because an index may be damaged.
        case .expire:
            """
            DELETE FROM items WHERE remove_at <= ?1 AND row IN
                (SELECT row FROM items WHERE remove_at <= ?1 ORDER BY remove_at LIMIT ?2)
            """
        case .stamp: "UPDATE items SET accessed = ?2 WHERE row = ?1 AND accessed < ?2"

        case .outboxAppend:
            """
            INSERT INTO outbox (operation, scope, coalescing, idempotency, state, attempts, enqueued, payload, sum)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """
        case .outboxList:
            """
            SELECT sequence, operation, scope, coalescing, idempotency, state, attempts, enqueued, payload, sum FROM outbox
            WHERE sequence > ?1 ORDER BY sequence LIMIT ?2
            """
        case .outboxUpdate:
            """
            UPDATE outbox SET operation = ?1, scope = ?2, coalescing = ?3, idempotency = ?4, state = ?5, attempts = ?6,
                enqueued = ?7, payload = ?8, sum = ?9
            WHERE sequence = ?10
            """
        case .outboxRemove: "DELETE FROM outbox WHERE sequence = ?1"

        // For salvage, from both ends, so that a damaged page loses only itself.
        case .outboxDown:
            """
            SELECT sequence, operation, scope, coalescing, idempotency, state, attempts, enqueued, payload, sum FROM outbox
            WHERE sequence > ?1 ORDER BY sequence DESC LIMIT ?2
            """
        case .metadataAll: "SELECT kind, key, value, sum FROM metadata"
        case .outboxRestore:
            """
            INSERT INTO outbox (operation, scope, coalescing, idempotency, state, attempts, enqueued, payload, sum, sequence)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING
            """
        case .outboxNotes:
            "SELECT key, value, sum FROM metadata WHERE kind = 0 AND key >= 'larder.rejection ' AND key < 'larder.rejection!'"
        case .outboxSequence: "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'"
        case .dropOutboxSequence: "DELETE FROM sqlite_sequence WHERE name = 'outbox'"
        case .putOutboxSequence: "INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?1)"

        case .indices: "SELECT name, field FROM indices WHERE type = ?1"
        case .addIndex: "INSERT INTO indices (type, name) VALUES (?1, ?2)"
        case .dropIndex: "DELETE FROM indices WHERE field = ?1"
        case .dropFields: "DELETE FROM fields WHERE row = ?1"
        case .putField: "INSERT INTO fields (field, value, row) VALUES (?1, ?2, ?3)"
        case .fieldIs: "SELECT row FROM fields WHERE field = ?1 AND value IS ?2"
        case .fieldBetween: "SELECT row FROM fields WHERE field = ?1 AND value >= ?2 AND value <= ?3"
        case .keyOfRow: "SELECT key FROM items WHERE row = ?1"
        // `value(_:_:)` reads the type as a number.
        case .fieldOfRow:
            """
            SELECT i.key, f.value, CASE typeof(f.value) WHEN 'integer' THEN 1 WHEN 'real' THEN 2 WHEN 'text' THEN 3 ELSE 0 END
            FROM fields f INDEXED BY fields_row CROSS JOIN items i ON i.row = f.row WHERE f.row = ?1 AND f.field = ?2
            """
        case .fieldsAscending:
            """
            SELECT f.row, i.key FROM fields f CROSS JOIN items i ON i.row = f.row WHERE f.field = ?1
            ORDER BY f.value, i.key
            """
        case .fieldsDescending:
            """
            SELECT f.row, i.key FROM fields f CROSS JOIN items i ON i.row = f.row WHERE f.field = ?1
            ORDER BY f.value DESC, i.key
            """
        }
    }
}

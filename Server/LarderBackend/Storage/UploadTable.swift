import LarderHTTP
import LarderSQLite
import LarderTime

/// A file that is being uploaded, or was.
struct UploadRow {
    let row: Int64
    let owner: Int64
    let mediaType: String
    /// The stated length of the whole; nil until it is known.
    let length: Int64?
    /// How much of it is here.
    let size: Int64
    /// The image that it has become, as in posts; nil before the last piece.
    let image: [UInt8]?
    /// When it was begun.
    let created: WallTime
    /// The ETag of the content; nil before the last piece.
    let tag: EntityTag?
}

/// Uploads in pieces. A complete one is an image; one that is not completed within a day is removed.
struct UploadTable {
    /// How long an incomplete upload is kept.
    static let lifetime: Duration = .seconds(24 * 60 * 60)

    let sql: SQL

    /// Begins an upload; returns its row.
    func add(owner: Int64, mediaType: String, length: Int64?, at now: WallTime) throws(SQLiteError) -> Int64 {
        try sql.insert(
            "INSERT INTO uploads (owner, media_type, length, size, created) VALUES (?, ?, ?, 0, ?)",
            [owner, mediaType, length, now]
        )
    }

    func find(_ row: Int64) throws(SQLiteError) -> UploadRow? {
        try sql.first(
            "SELECT owner, media_type, length, size, image, created, tag FROM uploads WHERE id = ?",
            [row]
        ) { upload in
            UploadRow(
                row: row,
                owner: upload.int64(0),
                mediaType: upload.text(1),
                length: upload.optional(2),
                size: upload.int64(3),
                image: upload.isNull(4) ? nil : upload.bytes(4),
                created: WallTime(milliseconds: upload.int64(5)),
                tag: upload.isNull(6) ? nil : EntityTag(opaque: upload.text(6))
            )
        }
    }

    func append(_ bytes: [UInt8], to upload: UploadRow) throws(SQLiteError) {
        guard !bytes.isEmpty else { return }
        try sql.run(
            "INSERT INTO upload_pieces (upload, start, bytes) VALUES (?, ?, ?)",
            [upload.row, upload.size, bytes]
        )
        try sql.run("UPDATE uploads SET size = size + ? WHERE id = ?", [bytes.count, upload.row])
    }

    /// - Parameter image: the image that it has become, as JSON.
    func complete(_ row: Int64, as image: [UInt8], _ tag: EntityTag) throws(SQLiteError) {
        try sql.run("UPDATE uploads SET image = ?, tag = ?, length = size WHERE id = ?", [image, tag.opaque, row])
    }

    /// The bytes that are here.
    func content(_ row: Int64) throws(SQLiteError) -> [UInt8] {
        var content: [UInt8] = []
        _ = try sql.all("SELECT bytes FROM upload_pieces WHERE upload = ? ORDER BY start", [row]) {
            $0.append(0, to: &content)
        }
        return content
    }

    /// The bytes of all uploads of a user.
    func bytes(of owner: Int64) throws(SQLiteError) -> Int64 {
        try sql.integer("SELECT sum(size) FROM uploads WHERE owner = ?", [owner]) ?? 0
    }

    /// The number of incomplete uploads of a user that have not expired.
    func incompleteCount(of owner: Int64, at now: WallTime) throws(SQLiteError) -> Int64 {
        try sql.integer(
            "SELECT count(*) FROM uploads WHERE owner = ? AND image IS NULL AND created > ?",
            [owner, now - Self.lifetime]
        ) ?? 0
    }

    func delete(_ row: Int64) throws(SQLiteError) {
        try sql.run("DELETE FROM upload_pieces WHERE upload = ?", [row])
        try sql.run("DELETE FROM uploads WHERE id = ?", [row])
    }

    /// Removes some of the uploads that have expired. The others count no more, and are removed with later ones.
    func removeExpired(_ now: WallTime) throws(SQLiteError) {
        let expired = try sql.all(
            "SELECT id FROM uploads WHERE image IS NULL AND created <= ? LIMIT 16",
            [now - Self.lifetime]
        ) { $0.int64(0) }
        for row in expired { try delete(row) }
    }
}

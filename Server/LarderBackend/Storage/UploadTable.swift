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
final class UploadTable {
    /// How long an incomplete upload is kept.
    static let lifetime: Duration = .seconds(24 * 60 * 60)

    private let insert: Statement
    private let select: Statement
    private let addPiece: Statement
    private let grow: Statement
    private let finish: Statement
    private let pieces: Statement
    private let sums: Statement
    private let removePieces: Statement
    private let remove: Statement
    private let expired: Statement
    private let last: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            "INSERT INTO uploads (owner, media_type, length, size, created) VALUES (?, ?, ?, 0, ?)"
        )
        select = try database.prepare(
            "SELECT owner, media_type, length, size, image, created, tag FROM uploads WHERE id = ?"
        )
        addPiece = try database.prepare("INSERT INTO upload_pieces (upload, start, bytes) VALUES (?, ?, ?)")
        grow = try database.prepare("UPDATE uploads SET size = size + ? WHERE id = ?")
        finish = try database.prepare("UPDATE uploads SET image = ?, tag = ?, length = size WHERE id = ?")
        pieces = try database.prepare("SELECT bytes FROM upload_pieces WHERE upload = ? ORDER BY start")
        sums = try database.prepare(
            "SELECT count(*) FILTER (WHERE image IS NULL AND created > ?2), coalesce(sum(size), 0) FROM uploads WHERE owner = ?1"
        )
        removePieces = try database.prepare("DELETE FROM upload_pieces WHERE upload = ?")
        remove = try database.prepare("DELETE FROM uploads WHERE id = ?")
        last = try database.prepare("SELECT last_insert_rowid()")
        expired = try database.prepare("SELECT id FROM uploads WHERE image IS NULL AND created <= ? LIMIT 16")
    }

    /// Begins an upload; returns its row.
    func add(owner: Int64, mediaType: String, length: Int64?, at now: WallTime) throws(SQLiteError) -> Int64 {
        try insert.bind(owner, at: 1)
        try insert.bind(mediaType, at: 2)
        try insert.bind(length, at: 3)
        try insert.bind(now.milliseconds, at: 4)
        try insert.run()
        defer { last.reset() }
        return try last.step() ? last.int64(0) : 0
    }

    func find(_ row: Int64) throws(SQLiteError) -> UploadRow? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        return UploadRow(
            row: row,
            owner: select.int64(0),
            mediaType: select.text(1),
            length: select.isNull(2) ? nil : select.int64(2),
            size: select.int64(3),
            image: select.isNull(4) ? nil : select.bytes(4),
            created: WallTime(milliseconds: select.int64(5)),
            tag: select.isNull(6) ? nil : EntityTag(opaque: select.text(6))
        )
    }

    func append(_ bytes: [UInt8], to upload: UploadRow) throws(SQLiteError) {
        guard !bytes.isEmpty else { return }
        try addPiece.bind(upload.row, at: 1)
        try addPiece.bind(upload.size, at: 2)
        try addPiece.bind(bytes, at: 3)
        try addPiece.run()
        try grow.bind(Int64(bytes.count), at: 1)
        try grow.bind(upload.row, at: 2)
        try grow.run()
    }

    /// - Parameter image: the image that it has become, as JSON.
    func complete(_ row: Int64, as image: [UInt8], _ tag: EntityTag) throws(SQLiteError) {
        try finish.bind(image, at: 1)
        try finish.bind(tag.opaque, at: 2)
        try finish.bind(row, at: 3)
        try finish.run()
    }

    /// The bytes that are here.
    func content(_ row: Int64) throws(SQLiteError) -> [UInt8] {
        defer { pieces.reset() }
        try pieces.bind(row, at: 1)
        var content: [UInt8] = []
        while try pieces.step() { content += pieces.bytes(0) }
        return content
    }

    /// The number of incomplete uploads of a user that have not expired, and the bytes of all uploads.
    func sums(of owner: Int64, at now: WallTime) throws(SQLiteError) -> (incomplete: Int64, bytes: Int64) {
        defer { sums.reset() }
        try sums.bind(owner, at: 1)
        try sums.bind((now - Self.lifetime).milliseconds, at: 2)
        return try sums.step() ? (sums.int64(0), sums.int64(1)) : (0, 0)
    }

    func delete(_ row: Int64) throws(SQLiteError) {
        try removePieces.bind(row, at: 1)
        try removePieces.run()
        try remove.bind(row, at: 1)
        try remove.run()
    }

    /// Removes some of the uploads that have expired. The others count no more, and are removed with later ones.
    func removeExpired(_ now: WallTime) throws(SQLiteError) {
        try expired.bind((now - Self.lifetime).milliseconds, at: 1)
        var rows: [Int64] = []
        while try expired.step() { rows.append(expired.int64(0)) }
        expired.reset()
        for row in rows { try delete(row) }
    }
}

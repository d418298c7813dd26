import LarderCoding
import LarderSQLite
import LarderTime

/// A profile row: the editable members and their version.
struct ProfileRow {
    let row: Int64
    var members: JSONObject
    var version: Int64
    var updated: WallTime
}

/// Profiles: one row each, with its JSON head.
struct ProfileTable {
    let sql: SQL

    func add(_ profile: ProfileRow, handle: String) throws(SQLiteError) {
        try sql.run(
            "INSERT INTO profiles (id, handle, head, version, updated) VALUES (?, ?, ?, 1, ?)",
            [profile.row, handle, EntityHead.encode(profile.members), profile.updated]
        )
    }

    /// Appends the profile's JSON and returns its version and modification time, or nil if there is no such person.
    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first("SELECT head, version, updated FROM profiles WHERE id = ?", [row]) { profile in
            profile.append(0, to: &bytes)
            bytes.append(profile.version(1))
            return profile.version(1)
        }
    }

    func find(_ row: Int64) throws -> ProfileRow? {
        try sql.first("SELECT head, version, updated FROM profiles WHERE id = ?", [row]) { profile in
            ProfileRow(
                row: row,
                members: try EntityHead.decode(profile.bytes(0)),
                version: profile.int64(1),
                updated: profile.time(2)
            )
        }
    }

    func row(handle: String) throws(SQLiteError) -> Int64? {
        try sql.integer("SELECT id FROM profiles WHERE handle = ?", [handle])
    }

    func replace(_ profile: ProfileRow) throws(SQLiteError) {
        try sql.run(
            "UPDATE profiles SET head = ?, version = ?, updated = ? WHERE id = ?",
            [EntityHead.encode(profile.members), profile.version, profile.updated, profile.row]
        )
    }

    /// The people behind a row whose names, places and descriptions have all words, in row order.
    func search(_ words: [String], after row: Int64, limit: Int, scanning maximum: Int) throws -> Found {
        let page = try sql.bound("SELECT id, head FROM profiles WHERE id > ? ORDER BY id LIMIT ?", [row, maximum + 1])
        defer { page.reset() }
        return try Found(words, limit: limit, scanning: maximum) {
            guard try page.step() else { return nil }
            let members = try EntityHead.decode(page.bytes(1))
            return (page.int64(0), ["handle", "displayName", "bio", "location"].map { members[$0] })
        }
    }

    /// The first rows behind a row.
    func rows(after row: Int64, limit: Int) throws(SQLiteError) -> [Int64] {
        try sql.all("SELECT id FROM profiles WHERE id > ? ORDER BY id LIMIT ?", [row, limit]) { $0.int64(0) }
    }
}

extension ProfileRow {
    init(
        _ row: Int64,
        handle: String,
        displayName: String,
        bio: String,
        location: String,
        avatar: ImageCatalogue.Image?,
        cover: ImageCatalogue.Image?,
        joined: WallTime
    ) {
        let members = JSONObject([
            "id": EntityID(.profile, row).json, "handle": .string(handle), "displayName": .string(displayName),
            "bio": .string(bio), "location": .string(location), "avatar": avatar?.reference ?? .null,
            "cover": cover?.reference ?? .null, "joinedAt": joined.json,
        ])
        self.init(row: row, members: members, version: 1, updated: joined)
    }
}

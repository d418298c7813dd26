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
final class ProfileTable {
    private let insert: Statement
    private let select: Statement
    private let selectByHandle: Statement
    private let update: Statement
    private let page: Statement
    private let further: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            "INSERT INTO profiles (id, handle, head, version, updated) VALUES (?, ?, ?, 1, ?)"
        )
        select = try database.prepare("SELECT head, version, updated FROM profiles WHERE id = ?")
        selectByHandle = try database.prepare("SELECT id FROM profiles WHERE handle = ?")
        update = try database.prepare("UPDATE profiles SET head = ?, version = ?, updated = ? WHERE id = ?")
        page = try database.prepare(
            "SELECT id, head, version, updated FROM profiles WHERE id > ? ORDER BY id LIMIT ?"
        )
        further = try database.prepare("SELECT 1 FROM profiles WHERE id > ? LIMIT 1")
    }

    func add(_ row: Int64, handle: String, members: JSONObject, at: WallTime) throws(SQLiteError) {
        try insert.bind(row, at: 1)
        try insert.bind(handle, at: 2)
        try insert.bind(EntityHead.encode(members), at: 3)
        try insert.bind(at.milliseconds, at: 4)
        try insert.run()
    }

    /// Appends the profile's JSON and returns its version and modification time, or nil if there is no such person.
    func append(_ row: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        let version = EntityVersion(select.int64(1), WallTime(milliseconds: select.int64(2)))
        select.append(0, to: &bytes)
        bytes.append(version: version.number, updated: version.updated)
        return version
    }

    func find(_ row: Int64) throws -> ProfileRow? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        guard try select.step() else { return nil }
        return ProfileRow(
            row: row,
            members: try EntityHead.decode(select.bytes(0)),
            version: select.int64(1),
            updated: WallTime(milliseconds: select.int64(2))
        )
    }

    func row(handle: String) throws(SQLiteError) -> Int64? {
        defer { selectByHandle.reset() }
        try selectByHandle.bind(handle, at: 1)
        return try selectByHandle.step() ? selectByHandle.int64(0) : nil
    }

    func replace(_ profile: ProfileRow) throws(SQLiteError) {
        try update.bind(EntityHead.encode(profile.members), at: 1)
        try update.bind(profile.version, at: 2)
        try update.bind(profile.updated.milliseconds, at: 3)
        try update.bind(profile.row, at: 4)
        try update.run()
    }

    /// Whether the row exists.
    func contains(after row: Int64) throws(SQLiteError) -> Bool {
        defer { further.reset() }
        try further.bind(row, at: 1)
        return try further.step()
    }

    /// The people behind a row whose names, places and descriptions have all words, in row order.
    func search(_ words: [String], after row: Int64, limit: Int, scanning maximum: Int) throws -> Found {
        defer { page.reset() }
        try page.bind(row, at: 1)
        try page.bind(Int64(maximum + 1), at: 2)
        return try Found(words, limit: limit, scanning: maximum) {
            guard try page.step() else { return nil }
            let members = try EntityHead.decode(page.bytes(1))
            return (page.int64(0), ["handle", "displayName", "bio", "location"].map { members[$0] })
        }
    }

    /// Appends up to `limit` profiles in row order, separated by commas; returns the rows.
    func appendPage(after row: Int64, limit: Int, to bytes: inout [UInt8]) throws(SQLiteError) -> [Int64] {
        defer { page.reset() }
        try page.bind(row, at: 1)
        try page.bind(Int64(limit), at: 2)
        var rows: [Int64] = []
        while try page.step() {
            if !rows.isEmpty { bytes.append(UInt8(ascii: ",")) }
            rows.append(page.int64(0))
            page.append(1, to: &bytes)
            bytes.append(version: page.int64(2), updated: WallTime(milliseconds: page.int64(3)))
        }
        return rows
    }
}

extension ProfileTable {
    /// The members of a profile that are stored in its head.
    static func members(
        row: Int64,
        handle: String,
        displayName: String,
        bio: String,
        location: String,
        avatar: ImageCatalogue.Image?,
        cover: ImageCatalogue.Image?,
        joined: String
    ) -> JSONObject {
        var members = JSONObject()
        members["id"] = .string(EntityID(.profile, row).text)
        members["handle"] = .string(handle)
        members["displayName"] = .string(displayName)
        members["bio"] = .string(bio)
        members["location"] = .string(location)
        members["avatar"] = avatar?.reference ?? .null
        members["cover"] = cover?.reference ?? .null
        members["joinedAt"] = .string(joined)
        return members
    }
}

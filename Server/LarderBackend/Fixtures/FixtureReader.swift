import LarderCoding
import LarderHTTP
import LarderTime

/// Reads a directory of fixtures (see `Fixtures/README.md`).
package enum FixtureReader {
    /// - Parameter directory: the directory with the files.
    /// - Throws: `FileError`, which names the file, the record, the member and the value: also of a reference to a record that does not
    ///   exist, whose position the database could not name.
    package static func read(_ directory: String) throws -> WorldContents {
        let world = try Record(document(directory, "world.json"), "world.json")
        var contents = WorldContents(
            origin: "fixtures '\(try world.string("name"))'",
            instant: try world.time("instant")
        )
        let images = try images(directory)
        contents.images = images
        var handles: Set<String> = []
        contents.people = try rows(directory, "people.json") { record, row in
            let handle = try record.string("handle")
            guard handles.insert(handle).inserted else { throw record.used("handle", handle) }
            return .profile(
                row,
                handle: handle,
                displayName: try record.string("displayName"),
                bio: try record.string("bio"),
                location: try record.string("location"),
                avatar: try record.image("avatar", images),
                cover: try record.image("cover", images),
                joined: try record.time("joinedAt")
            )
        }
        let people = Known("people.json", contents.people)
        contents.posts = try rows(directory, "posts.json") { record, row in
            let likedBy = try record.references("likedBy", to: people)
            let post = EntityRow.post(
                row,
                author: try record.reference("author", to: people),
                text: try record.string("text"),
                image: try record.image("image", images)?.json,
                created: try record.time("createdAt"),
                edited: try record.optional("editedAt", record.time),
                likes: likedBy.count
            )
            return (post, likedBy)
        }
        contents.accounts = try rows(directory, "accounts.json") { record, row in
            .account(
                row,
                owner: try record.optional("owner") { try record.reference($0, to: people) },
                try record.string("name"),
                kind: try record.string("kind"),
                try record.string("currency"),
                isOpen: try record.string("status") == "open",
                opened: try record.time("openedAt")
            )
        }
        let accounts = Known("accounts.json", contents.accounts)
        contents.transfers = try rows(directory, "transfers.json") { record, row in
            WorldContents.Transfer(
                row: row,
                at: try record.time("at"),
                from: try record.reference("from", to: accounts),
                to: try record.reference("to", to: accounts),
                minorUnits: try record.integer("minorUnits", in: 1...BankEndpoints.amountMaximum),
                note: try record.string("note")
            )
        }
        contents.conversations = try rows(directory, "conversations.json") { record, row in
            let members = try record.references("members", to: people)
            let title = try record.optional("title", record.string)
            let created = try record.time("createdAt")
            return (.conversation(row, title: title, members: members, created: created), members)
        }
        let conversations = Known("conversations.json", contents.conversations.map(\.conversation))
        contents.messages = try rows(directory, "messages.json") { record, row in
            .message(
                row,
                conversation: try record.reference("conversation", to: conversations),
                author: try record.reference("author", to: people),
                text: try record.string("text"),
                sent: try record.time("sentAt"),
                edited: try record.optional("editedAt", record.time),
                deleted: try record.optional("deletedAt", record.time)
            )
        }
        contents.tasks = try rows(directory, "tasks.json") { record, row in
            guard let status = TaskStatus(named: try record.string("status")) else {
                throw record.error("status", "must be \(TaskStatus.names)")
            }
            return .task(
                row,
                creator: try record.reference("creator", to: people),
                title: try record.string("title"),
                status: status,
                assignee: try record.optional("assignee") { try record.reference($0, to: people) },
                due: try record.optional("due", record.date),
                created: try record.time("createdAt"),
                updated: try record.time("updatedAt")
            )
        }
        return contents
    }

    /// The records of a file, each with an `id` of its own.
    private static func rows<Value>(
        _ directory: String,
        _ file: String,
        _ make: (Record, _ row: Int64) throws -> Value
    ) throws -> [Value] {
        var known: Set<Int64> = []
        return try records(directory, file) { record in
            let row = try record.integer("id", in: 1...Int64.max)
            guard known.insert(row).inserted else { throw record.used("id", "\(row)") }
            return try make(record, row)
        }
    }

    /// Reads only the image catalogue, for a database that already has its rows.
    package static func images(_ directory: String) throws -> ImageCatalogue {
        ImageCatalogue(try records(directory, "images.json") { try image($0, directory) })
    }

    private static func image(_ record: Record, _ directory: String) throws -> ImageCatalogue.Image {
        let id = try record.string("id")
        let renditions = try record.records("renditions").map { rendition in
            let digest = try rendition.string("sha256")
            guard let tag = EntityTag(opaque: String(digest.prefix(32))) else {
                throw rendition.error("sha256", "is not hexadecimal")
            }
            return ImageCatalogue.Rendition(
                width: Int(try rendition.integer("width", in: 1...65_535)),
                height: Int(try rendition.integer("height", in: 1...65_535)),
                mediaType: try rendition.string("type"),
                path: directory + "/" + (try rendition.string("file")),
                byteCount: Int(try rendition.integer("bytes", in: 0...1 << 40)),
                entityTag: tag
            )
        }
        let url = "/v1/images/" + id
        let reference = [("id", JSONValue.string(id)), ("url", .string(url))]
        let widths = Set(renditions.map(\.width)).sorted()
        let members: [(String, JSONValue)] = [
            ("width", .integer(try record.integer("width"))), ("height", .integer(try record.integer("height"))),
            ("alt", .string(try record.string("alt"))), ("placeholder", .string(try record.string("placeholder"))),
            ("widths", .array(widths.map { .integer(Int64($0)) })),
        ]
        return ImageCatalogue.Image(
            id: id,
            renditions: renditions.sorted { $0.width < $1.width },
            json: .members(reference + members),
            reference: .members(reference)
        )
    }

    private static func records<Value>(
        _ directory: String,
        _ file: String,
        _ make: (Record) throws -> Value
    ) throws -> [Value] {
        guard case .array(let items) = try document(directory, file) else {
            throw FileError("\(file): the file must contain an array.")
        }
        return try items.enumerated().map { try make(Record($0.element, "\(file), record \($0.offset + 1)")) }
    }

    private static func document(_ directory: String, _ file: String) throws(FileError) -> JSONValue {
        do { return try SourceFile.json(directory + "/" + file) } catch {
            throw FileError("\(error). Name the directory with --fixtures.")
        }
    }
}

/// A JSON object of a file, with its position for error messages.
private struct Record {
    private let object: JSONObject
    private let place: String

    init(_ value: JSONValue, _ place: String) throws(FileError) {
        guard case .object(let object) = value else { throw FileError("\(place): must be an object.") }
        self.object = object
        self.place = place
    }

    func error(_ name: String, _ what: String) -> FileError { FileError("\(place): '\(name)' \(what).") }

    func string(_ name: String) throws(FileError) -> String {
        guard let value = object[name]?.string else { throw error(name, "must be a string") }
        return value
    }

    func integer(_ name: String) throws(FileError) -> Int64 {
        guard let value = object[name]?.integer else { throw error(name, "must be an integer") }
        return value
    }

    func integer(_ name: String, in range: ClosedRange<Int64>) throws(FileError) -> Int64 {
        let value = try integer(name)
        guard range.contains(value) else {
            throw error(name, "is \(value), and must be \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func time(_ name: String) throws(FileError) -> WallTime {
        guard let time = WallTime(rfc3339: try string(name)) else { throw error(name, "must be an RFC 3339 time") }
        return time
    }

    func date(_ name: String) throws(FileError) -> TaskDate {
        guard let date = TaskDate(parsing: try string(name)) else { throw error(name, "must be a date, YYYY-MM-DD") }
        return date
    }

    /// What `read` makes of a member; nil for null.
    func optional<Value>(_ name: String, _ read: (String) throws -> Value) rethrows -> Value? {
        object[name] ?? .null == .null ? nil : try read(name)
    }

    func image(_ name: String, _ images: ImageCatalogue) throws -> ImageCatalogue.Image? {
        try optional(name) { name in
            let id = try string(name)
            guard let image = images[id] else {
                throw error(name, "is '\(id)', which is the id of no record in images.json")
            }
            return image
        }
    }

    /// The row of a record of another file.
    func reference(_ name: String, to known: Known) throws(FileError) -> Int64 {
        let row = try integer(name)
        try check(row, name, known)
        return row
    }

    /// The rows of records of another file, each once.
    func references(_ name: String, to known: Known) throws(FileError) -> [Int64] {
        guard let array = object[name]?.array else { throw error(name, "must be an array") }
        let rows = array.compactMap(\.integer)
        guard rows.count == array.count else { throw error(name, "must contain integers") }
        for (index, row) in rows.enumerated() {
            try check(row, name, known)
            if rows[..<index].contains(row) { throw error(name, "is \(rows), which names \(row) twice") }
        }
        return rows
    }

    private func check(_ row: Int64, _ name: String, _ known: Known) throws(FileError) {
        guard !known.rows.contains(row) else { return }
        throw error(name, "is \(row), which is the id of no record in \(known.file)")
    }

    func used(_ name: String, _ value: String) -> FileError {
        error(name, "is \(value), which is used by an earlier record")
    }

    func records(_ name: String) throws(FileError) -> [Record] {
        guard let array = object[name]?.array else { throw error(name, "must be an array") }
        var records: [Record] = []
        for value in array { records.append(try Record(value, "\(place), \(name)")) }
        return records
    }

}

/// The records of a file to which others may refer.
private struct Known {
    let file: String
    let rows: Set<Int64>

    init(_ file: String, _ rows: [EntityRow]) { (self.file, self.rows) = (file, Set(rows.map(\.id.row))) }
}

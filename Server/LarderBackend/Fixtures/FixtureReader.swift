import LarderCoding
import LarderHTTP
import LarderTime

/// Reads a directory of fixtures (see `Fixtures/README.md`).
package enum FixtureReader {
    /// - Parameter directory: the directory with the files.
    /// - Throws: `FileError`, which names the file and the record.
    package static func read(_ directory: String) throws -> WorldContents {
        let world = try Record(document(directory, "world.json"), "world.json")
        var contents = WorldContents(
            origin: "fixtures '\(try world.string("name"))'",
            instant: try world.time("instant")
        )
        contents.people = try records(directory, "people.json") { record in
            WorldContents.Person(
                row: try record.integer("id"),
                handle: try record.string("handle"),
                displayName: try record.string("displayName"),
                bio: try record.string("bio"),
                location: try record.string("location"),
                avatar: try record.optionalString("avatar"),
                cover: try record.optionalString("cover"),
                joined: try record.time("joinedAt")
            )
        }
        contents.posts = try records(directory, "posts.json") { record in
            WorldContents.Post(
                row: try record.integer("id"),
                author: try record.integer("author"),
                text: try record.string("text"),
                image: try record.optionalString("image"),
                created: try record.time("createdAt"),
                edited: try record.optionalTime("editedAt"),
                likedBy: try record.integers("likedBy")
            )
        }
        contents.accounts = try records(directory, "accounts.json") { record in
            WorldContents.Account(
                row: try record.integer("id"),
                owner: try record.optionalInteger("owner"),
                name: try record.string("name"),
                kind: try record.string("kind"),
                currency: try record.string("currency"),
                isOpen: try record.string("status") == "open",
                opened: try record.time("openedAt")
            )
        }
        contents.transfers = try records(directory, "transfers.json") { record in
            WorldContents.Transfer(
                row: try record.integer("id"),
                at: try record.time("at"),
                from: try record.integer("from"),
                to: try record.integer("to"),
                minorUnits: try record.integer("minorUnits", in: 1...BankEndpoints.amountMaximum),
                note: try record.string("note")
            )
        }
        contents.conversations = try records(directory, "conversations.json") { record in
            WorldContents.Conversation(
                row: try record.integer("id"),
                title: try record.optionalString("title"),
                members: try record.integers("members"),
                created: try record.time("createdAt")
            )
        }
        contents.messages = try records(directory, "messages.json") { record in
            WorldContents.Message(
                row: try record.integer("id"),
                conversation: try record.integer("conversation"),
                author: try record.integer("author"),
                text: try record.string("text"),
                sent: try record.time("sentAt"),
                edited: try record.optionalTime("editedAt"),
                deleted: try record.optionalTime("deletedAt")
            )
        }
        contents.tasks = try records(directory, "tasks.json") { record in
            guard let status = TaskStatus(named: try record.string("status")) else {
                throw record.error("status", "must be \(TaskStatus.names)")
            }
            var due: TaskDate?
            if let text = try record.optionalString("due") {
                guard let date = TaskDate(parsing: text) else {
                    throw record.error("due", "must be a date, YYYY-MM-DD")
                }
                due = date
            }
            return WorldContents.Task(
                row: try record.integer("id"),
                creator: try record.integer("creator"),
                title: try record.string("title"),
                status: status,
                assignee: try record.optionalInteger("assignee"),
                due: due,
                created: try record.time("createdAt"),
                updated: try record.time("updatedAt")
            )
        }
        contents.images = try images(directory)
        try FixtureReferences.check(contents)
        return contents
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

    func optionalString(_ name: String) throws(FileError) -> String? { isNull(name) ? nil : try string(name) }

    func optionalInteger(_ name: String) throws(FileError) -> Int64? { isNull(name) ? nil : try integer(name) }

    func optionalTime(_ name: String) throws(FileError) -> WallTime? { isNull(name) ? nil : try time(name) }

    func integers(_ name: String) throws(FileError) -> [Int64] {
        guard let array = object[name]?.array else { throw error(name, "must be an array") }
        let values = array.compactMap(\.integer)
        guard values.count == array.count else { throw error(name, "must contain integers") }
        return values
    }

    func records(_ name: String) throws(FileError) -> [Record] {
        guard let array = object[name]?.array else { throw error(name, "must be an array") }
        var records: [Record] = []
        for value in array { records.append(try Record(value, "\(place), \(name)")) }
        return records
    }

    private func isNull(_ name: String) -> Bool { object[name] == nil || object[name] == .null }
}

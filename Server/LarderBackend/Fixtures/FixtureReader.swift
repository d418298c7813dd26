import LarderCoding
import LarderHTTP
import LarderTime

/// Reads a directory of fixtures (see `Fixtures/README.md`).
package enum FixtureReader {
    /// - Parameter directory: the directory with the files.
    /// - Throws: `FileError`, which names the file, the line, the member and the value: also of a reference to a record that does not
    ///   exist, whose position the database could not name.
    package static func read(_ directory: String) throws(FileError) -> WorldContents {
        let world = try records(directory, "world.json") { ($0.text("name"), $0.time("instant")) }
        var contents = WorldContents(
            origin: "fixtures '\(world.first?.0 ?? "")'",
            instant: world.first?.1 ?? WallTime(seconds: 0)
        )
        let images = try images(directory)
        contents.images = images
        var handles: Set<String> = []
        contents.people = try rows(directory, "people.json") { record, row in
            let handle = record.text("handle")
            if !handles.insert(handle).inserted { record.failUsed("handle", handle) }
            return .profile(
                row,
                handle: handle,
                displayName: record.text("displayName"),
                bio: record.text("bio"),
                location: record.text("location"),
                avatar: record.image("avatar", images),
                cover: record.image("cover", images),
                joined: record.time("joinedAt")
            )
        }
        let people = Known("people.json", contents.people)
        contents.posts = try rows(directory, "posts.json") { record, row in
            let likedBy = record.references("likedBy", to: people)
            let post = EntityRow.post(
                row,
                author: record.reference("author", to: people),
                text: record.text("text"),
                image: record.image("image", images)?.json,
                created: record.time("createdAt"),
                edited: record.optional("editedAt", record.time),
                likes: likedBy.count
            )
            return (post, likedBy)
        }
        contents.accounts = try rows(directory, "accounts.json") { record, row in
            .account(
                row,
                owner: record.optional("owner") { record.reference($0, to: people) },
                record.text("name"),
                kind: record.text("kind"),
                record.text("currency"),
                isOpen: record.text("status") == "open",
                opened: record.time("openedAt")
            )
        }
        let accounts = Known("accounts.json", contents.accounts)
        contents.transfers = try rows(directory, "transfers.json") { record, row in
            WorldContents.Transfer(
                row: row,
                at: record.time("at"),
                from: record.reference("from", to: accounts),
                to: record.reference("to", to: accounts),
                minorUnits: record.row("minorUnits", in: 1...Int(BankEndpoints.amountMaximum)),
                note: record.text("note")
            )
        }
        contents.conversations = try rows(directory, "conversations.json") { record, row in
            let members = record.references("members", to: people)
            let title = record.optional("title", record.text)
            return (.conversation(row, title: title, members: members, created: record.time("createdAt")), members)
        }
        let conversations = Known("conversations.json", contents.conversations.map(\.conversation))
        contents.messages = try rows(directory, "messages.json") { record, row in
            .message(
                row,
                conversation: record.reference("conversation", to: conversations),
                author: record.reference("author", to: people),
                text: record.text("text"),
                sent: record.time("sentAt"),
                edited: record.optional("editedAt", record.time),
                deleted: record.optional("deletedAt", record.time)
            )
        }
        contents.tasks = try rows(directory, "tasks.json") { record, row in
            .task(
                row,
                creator: record.reference("creator", to: people),
                title: record.text("title"),
                status: record.parsed("status", TaskStatus.names, TaskStatus.init(named:)) ?? .open,
                assignee: record.optional("assignee") { record.reference($0, to: people) },
                due: record.optional("due") { record.parsed($0, "a date, YYYY-MM-DD", TaskDate.init(parsing:)) } ?? nil,
                created: record.time("createdAt"),
                updated: record.time("updatedAt")
            )
        }
        return contents
    }

    /// The records of a file, each with an `id` of its own.
    private static func rows<Value>(
        _ directory: String,
        _ file: String,
        _ make: (BodyReader, _ row: Int64) -> Value
    ) throws(FileError) -> [Value] {
        var known: Set<Int64> = []
        return try records(directory, file) { record in
            let row = record.row("id", in: 1...Int.max)
            if !known.insert(row).inserted { record.failUsed("id", "\(row)") }
            return make(record, row)
        }
    }

    /// Reads only the image catalogue, for a database that already has its rows.
    package static func images(_ directory: String) throws(FileError) -> ImageCatalogue {
        ImageCatalogue(try records(directory, "images.json") { image($0, directory) })
    }

    private static func image(_ record: BodyReader, _ directory: String) -> ImageCatalogue.Image {
        let id = record.text("id")
        let renditions = record.objects("renditions", count: 0...Int.max)?.compactMap { rendition in
            let digest = rendition.parsed("sha256", "hexadecimal") { EntityTag(opaque: String($0.prefix(32))) }
            return digest.map { tag in
                ImageCatalogue.Rendition(
                    width: Int(rendition.row("width", in: 1...65_535)),
                    height: Int(rendition.row("height", in: 1...65_535)),
                    mediaType: rendition.text("type"),
                    path: directory + "/" + rendition.text("file"),
                    byteCount: Int(rendition.row("bytes", in: 0...1 << 40)),
                    entityTag: tag
                )
            }
        }
        if renditions == nil { record.failMissing("renditions", "is missing") }
        let reference = [("id", JSONValue.string(id)), ("url", .string("/v1/images/" + id))]
        let widths = Set((renditions ?? []).map(\.width)).sorted()
        let members: [(String, JSONValue)] = [
            ("width", .integer(record.row("width"))), ("height", .integer(record.row("height"))),
            ("alt", .string(record.text("alt"))), ("placeholder", .string(record.text("placeholder"))),
            ("widths", .array(widths.map { .integer(Int64($0)) })),
        ]
        return ImageCatalogue.Image(
            id: id,
            renditions: (renditions ?? []).sorted { $0.width < $1.width },
            json: .members(reference + members),
            reference: .members(reference)
        )
    }

    /// What `make` makes of the objects in a file, or of the only one.
    private static func records<Value>(
        _ directory: String,
        _ file: String,
        _ make: (BodyReader) -> Value
    ) throws(FileError) -> [Value] {
        let path = directory + "/" + file
        let (bytes, value): ([UInt8], JSONValue)
        do {
            bytes = try SourceFile.bytes(path)
            value = try SourceFile.json(bytes, named: path)
        } catch { throw FileError("\(error). Name the directory with --fixtures.") }
        let errors = BodyErrors()
        let made = (value.array ?? [value]).enumerated().compactMap { index, element -> Value? in
            let pointer = value.array == nil ? "" : "/\(index)"
            if let object = element.object { return make(BodyReader(object, at: pointer, errors)) }
            errors.add(pointer, "must be an object")
            return nil
        }
        if let first = errors.all.first { throw FileError(path, bytes, at: first.pointer, first.detail) }
        return made
    }
}

/// The members of records. One that is missing or wrong is reported, and has any value.
extension BodyReader {
    fileprivate func text(_ name: String) -> String { parsed(name, "a string") { $0 } ?? "" }

    /// What `parse` makes of a text; reported if it makes nothing.
    fileprivate func parsed<Value>(_ name: String, _ expectation: String, _ parse: (String) -> Value?) -> Value? {
        let value = value(name)?.string.flatMap(parse)
        if value == nil { fail(name, "must be " + expectation) }
        return value
    }

    fileprivate func time(_ name: String) -> WallTime {
        parsed(name, "an RFC 3339 time", WallTime.init(rfc3339:)) ?? WallTime(seconds: 0)
    }

    fileprivate func row(_ name: String, in range: ClosedRange<Int> = 0...Int.max) -> Int64 {
        let row = integer(name, in: range)
        if row == nil { failMissing(name, "is missing") }
        return Int64(row ?? 0)
    }

    /// What `read` makes of a member; nil for null.
    fileprivate func optional<Value>(_ name: String, _ read: (String) -> Value) -> Value? {
        has(name) ? read(name) : nil
    }

    fileprivate func image(_ name: String, _ images: ImageCatalogue) -> ImageCatalogue.Image? {
        optional(name) { name in
            let id = text(name)
            if images[id] == nil { fail(name, "is '\(id)', which is the id of no record in images.json") }
            return images[id]
        } ?? nil
    }

    /// The row of a record of another file.
    fileprivate func reference(_ name: String, to known: Known) -> Int64 {
        let row = row(name)
        check(row, name, known)
        return row
    }

    /// The rows of records of another file, each once.
    fileprivate func references(_ name: String, to known: Known) -> [Int64] {
        let rows = array(name, count: 0...Int.max)?.map { $0.value.integer ?? 0 }
        if rows == nil { failMissing(name, "is missing") }
        for (index, row) in (rows ?? []).enumerated() {
            check(row, name, known)
            if rows?[..<index].contains(row) ?? false { fail(name, "names \(row) twice") }
        }
        return rows ?? []
    }

    private func check(_ row: Int64, _ name: String, _ known: Known) {
        if !known.rows.contains(row) { fail(name, "is \(row), which is the id of no record in \(known.file)") }
    }

    fileprivate func failUsed(_ name: String, _ value: String) {
        fail(name, "is \(value), which is used by an earlier record")
    }
}

/// The records of a file to which others may refer.
private struct Known {
    let file: String
    let rows: Set<Int64>

    init(_ file: String, _ rows: [EntityRow]) { (self.file, self.rows) = (file, Set(rows.map(\.id.row))) }
}

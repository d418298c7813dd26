import LarderCoding
import LarderHTTP
import LarderResources
import LarderTransport

/// A write as it is stored in the outbox: the request, and the local changes that are shown until the server has carried it out.
struct StoredWrite: Codable, Sendable {
    var method: String
    var path: String
    /// The content, which is JSON; nil if there is none.
    var body: String?
    /// Names and values of the header fields of this request.
    var fields: [[String]]
    /// The field of the idempotency key; nil: the request has none.
    var keyField: String?
    var scope: String
    var coalescingKey: String?
    var changes: [StoredChange]
    var edits: [StoredListEdit]
    /// The file that is the content; nil: the content is `body`.
    var file: File?

    /// A copy of a file (`UploadFiles`).
    struct File: Codable, Sendable {
        var name: String
        var length: Int64
        var contentType: String
    }

    /// Replaces the idempotency key of a request in its path and its body.
    static let keyPlaceholder = "{idempotencyKey}"
    /// The prefix of the identifiers of entities that the server does not know yet.
    static let localPrefix = "local-"

    /// The local identifiers in the path and the body, and of the changed entities.
    var localIDs: Set<String> {
        let words = path.split(whereSeparator: Self.endsLocalID).map(String.init)
        let texts = (body ?? "").split(separator: "\"").lazy.map(String.init).filter(Self.isLocalID)
        return Set(words + texts + changes.map(\.id) + edits.map(\.id)).filter(Self.isLocalID)
    }

    /// Whether a text has the form of `APIClient.localID`. One that only begins so is a word of the server.
    static func isLocalID(_ text: String) -> Bool {
        guard text.hasPrefix(localPrefix) else { return false }
        let groups = text.dropFirst(localPrefix.count).split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.count) == [8, 4, 4, 4, 12] && groups.allSatisfy { $0.allSatisfy(\.isHexDigit) }
    }

    /// The local identifiers that no change of this write creates.
    var unknownIDs: Set<String> {
        localIDs.subtracting(changes.lazy.filter { $0.kind == .create }.map(\.id))
    }

    private static func isSeparator(_ character: Character) -> Bool { "/?&=".contains(character) }

    /// Whether a local identifier may stand beside a character in a path: nothing else can be meant.
    private static func endsLocalID(_ character: Character) -> Bool {
        !character.isLetter && !character.isNumber && character != "-"
    }

    // MARK: Sending

    /// The request under a key.
    func request(to source: HTTPSource, key: String) -> TransportRequest {
        var sent = Fields()
        for field in fields where field.count == 2 {
            if let name = FieldName(field[0]) { sent.add(name, field[1]) }
        }
        let isPlaced = [path, body ?? ""].contains { $0.contains(Self.keyPlaceholder) }
        if let name = keyField.flatMap({ FieldName($0) }), !isPlaced { sent.set(name, key) }
        let path = path.replacing(Self.keyPlaceholder, with: HTTPSource.escape(key))
        var request = source.request(LarderHTTP.Method(method), path, sent)
        guard let body else { return request }
        request.body = Array(body.replacing(Self.keyPlaceholder, with: key).utf8)
        if request.fields[.contentType] == nil {
            request.fields.set(.contentType, source.configuration.contentType)
        }
        return request
    }

    // MARK: Identifiers

    /// The tag of `If-Match`, if there is one alone.
    var condition: EntityTag? {
        fields.first { $0.count == 2 && FieldName($0[0]) == .ifMatch }.flatMap { EntityTag(parsing: $0[1]) }
    }

    /// What says that the entity at the path has a new tag.
    func successor(_ tag: EntityTag) -> String { "If-Match \(path) \(tag)" }

    /// The write with server IDs in place of local ones: in the path, where one that the app has made is a whole segment or value of the query,
    /// and as a string of the body; and with the tag of the latest edit of this client in `If-Match`.
    func replacingIDs(_ ids: [String: String]) -> StoredWrite {
        var write = self
        let mark = "If-Match "
        for (local, server) in ids where !server.hasPrefix(mark) {
            write.path = Self.replacing(local, server, inPath: write.path)
            write.body = write.body.map { Self.replacing(local, server, inJSON: $0) }
            write.changes = write.changes.map { change in
                var change = change
                if change.id == local { change.id = server }
                change.document = change.document.map { MergePatch.replacing(local, server, in: $0) }
                change.base = change.base.map { MergePatch.replacing(local, server, in: $0) }
                return change
            }
            for index in write.edits.indices where write.edits[index].id == local { write.edits[index].id = server }
        }
        // Each edit has a tag of its own; a server that repeats them ends the search too.
        for _ in ids {
            guard let old = write.condition, let new = ids[old.opaque], new.hasPrefix("\(mark)\(write.path) ") else {
                break
            }
            let tag = String(new.dropFirst("\(mark)\(write.path) ".count))
            write.fields = write.fields.map { FieldName($0.first ?? "") == .ifMatch ? [$0[0], tag] : $0 }
        }
        return write
    }

    private static func replacing(_ local: String, _ server: String, inPath path: String) -> String {
        let isEnd = isLocalID(local) ? endsLocalID : isSeparator
        var result = ""
        var word = ""
        func finish() {
            result += word == local || word == HTTPSource.escape(local) ? HTTPSource.escape(server) : word
            word = ""
        }
        for character in path {
            guard isEnd(character) else {
                word.append(character)
                continue
            }
            finish()
            result.append(character)
        }
        finish()
        return result
    }

    private static func replacing(_ local: String, _ server: String, inJSON text: String) -> String {
        text.replacing(MergePatch.text(.string(local)), with: MergePatch.text(.string(server)))
    }

    // MARK: Coalescing

    /// What becomes of an unsent write and a later one with the same coalescing key.
    static func coalesce(_ older: StoredWrite, _ newer: StoredWrite) -> Outbox.Coalesced<StoredWrite> {
        let created = older.method == "POST" ? older.changes.filter { $0.kind == .create } : []
        if let entity = created.first {
            let isRemoved = newer.changes.contains {
                $0.kind == .remove && $0.type == entity.type && $0.id == entity.id
            }
            return isRemoved ? .removeBoth : .keepBoth
        }
        var merged = newer
        merged.changes = newer.changes.reduce(into: older.changes) { StoredChange.add($1, to: &$0) }
        merged.edits =
            older.edits.filter { old in !newer.edits.contains { $0.changesSame(as: old) } } + newer.edits
        if older.method == "PATCH", newer.method == "PATCH", older.path == newer.path, let old = older.body,
            let new = newer.body
        {
            // Bodies that are no JSON objects cannot be merged: both are sent.
            guard let old = try? MergePatch.parse(old), let new = try? MergePatch.parse(new), old.object != nil,
                new.object != nil, let both = MergePatch.compose(old, new)
            else { return .keepBoth }
            merged.body = MergePatch.text(both)
        }
        return .replace(merged)
    }
}

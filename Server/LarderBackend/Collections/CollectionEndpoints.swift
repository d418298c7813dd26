import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The API of the user's own collections: lists, documents, the change feed and live events, for everyone without a session.
enum CollectionEndpoints {
    static let routes: [Route] = [
        Route(.get, "/", .ignored, index),
        Route(.get, "/changes", .ignored, changes),
        Route(.get, "/live", .ignored, live),
        Route(.get, "/{collection}", .ignored, list),
        Route(.post, "/{collection}", .ignored, create),
        Route(.put, "/{collection}", .ignored, replace),
        Route(.patch, "/{collection}", .ignored, patch),
        Route(.get, "/{collection}/{id}", .ignored, read),
        Route(.put, "/{collection}/{id}", .ignored, replace),
        Route(.patch, "/{collection}/{id}", .ignored, patch),
        Route(.delete, "/{collection}/{id}", .ignored, delete),
        Route(.get, "/{collection}/{id}/{children}", .ignored, children),
        Route(.post, "/{collection}/{id}/{children}", .ignored, createChild),
    ]

    private static func changes(_ call: inout Call) throws(Problem) -> Reply? {
        do throws(Problem) { return try ChangeEndpoints.read(&call) } catch { throw moved(error) }
    }

    private static func live(_ call: inout Call) throws(Problem) -> Reply? {
        do throws(Problem) {
            if call.request.isWebSocketUpgrade { return try LiveEndpoints.webSocket(&call) }
            return try LiveEndpoints.eventStream(&call)
        } catch { throw moved(error) }
    }

    /// A problem that leads to the change feed, at its path here.
    private static func moved(_ problem: Problem) -> Problem {
        var problem = problem
        if problem.fields.contains(.location) { problem.fields.set(.location, "/changes") }
        return problem
    }

    // MARK: Reading

    private static func index(_ call: inout Call) throws(Problem) -> Reply? {
        let names = call.world.collections + ["changes", "live"]
        let members = names.map { JSONObject.Member(name: $0, value: .string("/\($0)")) }
        let body = DocumentJSON.encode(.object(JSONObject(members)))
        return try call.reply(
            Representation(body: body, cacheControl: CachePolicy.revalidate)
        )
    }

    private static func list(_ call: inout Call) throws(Problem) -> Reply? {
        let name = call.parameters[0]
        let current = call
        return try call.reply(
            try call.read { store in
                guard try store.documents.isNumbered(name) != nil else { throw missing(name, current.world) }
                if try store.documents.isSingular(name) {
                    return representation(of: try existing(current, in: store), current)
                }
                let page = try CollectionPage(try CollectionQuery(current, of: name), in: store)
                return Representation(
                    body: page.body,
                    cacheControl: CachePolicy.revalidate,
                    vary: "Origin",
                    lines: page.lines
                )
            }
        )
    }

    private static func read(_ call: inout Call) throws(Problem) -> Reply? {
        let current = call
        return try call.reply(
            try call.read { store in
                var row = try existing(current, in: store)
                if let names = current.query.first("_embed") {
                    let names = names.split(separator: ",").map { String($0) }
                    let document = try JSONParser.parse(row.json)
                    row.json = DocumentJSON.encode(
                        try CollectionRelations.embedding(names, in: document, of: current.parameters[0], store)
                    )
                }
                return representation(of: row, current)
            }
        )
    }

    /// `GET /posts/1/comments`: the comments whose `postId` is 1.
    private static func children(_ call: inout Call) throws(Problem) -> Reply? {
        let current = call
        return try call.reply(
            try call.read { store in
                let (parent, name) = (current.parameters[0], current.parameters[2])
                _ = try existing(current, in: store)
                guard try store.documents.isNumbered(name) != nil else { throw missing(name, current.world) }
                let key = CollectionRelations.foreignKey(parent)
                let query = try CollectionQuery(current, of: name, where: key, is: current.parameters[1])
                let page = try CollectionPage(query, in: store)
                return Representation(
                    body: page.body,
                    cacheControl: CachePolicy.revalidate,
                    vary: "Origin",
                    lines: page.lines
                )
            }
        )
    }

    /// `POST /posts/1/comments`: a comment with `postId` 1.
    private static func createChild(_ call: inout Call) throws(Problem) -> Reply? {
        let current = call
        let id = try call.read { store in
            try JSONParser.parse(try existing(current, in: store).json)["id"] ?? .null
        }
        let key = CollectionRelations.foreignKey(call.parameters[0])
        return try create(call, in: call.parameters[2], with: JSONObject.Member(name: key, value: id))
    }

    private static func representation(of row: DocumentRow, _ call: Call) -> Representation {
        Representation(
            body: row.json,
            cacheControl: CachePolicy.revalidate,
            vary: "Origin",
            modified: call.modification(row.updated)
        )
    }

    /// The document of the path.
    private static func existing(_ call: Call, in store: Store) throws -> DocumentRow {
        let (name, id) = (call.parameters[0], call.parameters.count > 1 ? call.parameters[1] : "")
        guard try store.documents.isNumbered(name) != nil else { throw missing(name, call.world) }
        if id.isEmpty, try !store.documents.isSingular(name) {
            throw ProblemType.methodNotAllowed(
                "/\(name) is a list. PUT and PATCH take one of its documents, such as /\(name)/1.",
                fields: [.allow: "GET, HEAD, OPTIONS, POST"]
            )
        }
        guard let row = try store.documents.find(name, id) else {
            throw ProblemType.notFound(
                "/\(name) has no document \(id.prefix(DocumentID.lengthMaximum)). GET /\(name) lists all."
            )
        }
        return row
    }

    private static func missing(_ name: String, _ world: World) -> Problem {
        ProblemType.notFound(CollectionNames.reasonMissing(name, in: world))
    }

    // MARK: Writing

    private static func create(_ call: inout Call) throws(Problem) -> Reply? {
        try create(call, in: call.parameters[0])
    }

    private static func create(
        _ call: Call,
        in name: String,
        with member: JSONObject.Member? = nil
    ) throws(Problem) -> Reply? {
        let seed = call.world.seed
        guard call.world.collections.contains(name) else { throw missing(name, call.world) }
        if try call.read({ try $0.documents.isSingular(name) }) {
            throw ProblemType.methodNotAllowed(
                "/\(name) is one document. Replace it with PUT or change it with PATCH.",
                fields: [.allow: "GET, HEAD, OPTIONS, PATCH, PUT"]
            )
        }
        var body = try call.jsonObject()
        if let member { body[member.name] = member.value }
        let content = body
        var given: DocumentID?
        if let value = body["id"] {
            given = DocumentID(value)
            if given == nil { throw invalidID("must be an integer or a text of 1 to 200 bytes") }
        }
        let wanted = given
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            let id: DocumentID
            var document = content
            if let wanted {
                guard try store.documents.find(name, wanted.text) == nil else {
                    throw ProblemType.documentExists(
                        "/\(name) has a document \(wanted.text). Replace it with PUT, or send no `id` to get a new one."
                    )
                }
                id = wanted
            } else {
                id = try newID(name, seed, in: store)
                document = JSONObject([JSONObject.Member(name: "id", value: id.json)] + content.members)
            }
            let row = try store.documents.add(id, DocumentJSON.encode(.object(document)), to: name, at: commit.now)
            try commit.record(.document, row.number, audience: .everyone, version: row.version, in: store)
            return .created(at: "/\(name)/\(CollectionPage.encoded(id.text))", row.json)
        }
    }

    /// The next number, or a text that follows from the world's seed.
    private static func newID(_ name: String, _ seed: UInt64, in store: Store) throws -> DocumentID {
        if try store.documents.isNumbered(name) ?? true {
            let greatest = try store.documents.greatestNumber(name)
            guard greatest < .max else { throw invalidID("is required, because the greatest number is taken") }
            let next = DocumentID(max(greatest, 0) + 1)
            if try store.documents.find(name, next.text) == nil { return next }
        }
        var attempt = try store.documents.nextPlace(name)
        while true {
            let hash = ContentHash.hash64(Array("\(name) \(attempt)".utf8).span, seed: seed)
            let text = String(hash, radix: 16)
            let id = DocumentID(String(repeating: "0", count: 16 - text.count) + text)
            if try store.documents.find(name, id.text) == nil { return id }
            attempt += 1
        }
    }

    private static func replace(_ call: inout Call) throws(Problem) -> Reply? {
        let body = try call.jsonObject()
        return try edit(call) { _ in body }
    }

    private static func patch(_ call: inout Call) throws(Problem) -> Reply? {
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        return try edit(call) { DocumentJSON.merge(patch, into: $0) }
    }

    private static func edit(_ call: Call, _ change: (JSONObject) -> JSONObject) throws(Problem) -> Reply? {
        try Idempotency.run(call, isKeyRequired: false) { store, commit in
            var row = try existing(call, in: store)
            try call.checkConditions(on: representation(of: row, call), version: row.version, isRequired: false)
            let old = try JSONParser.parse(row.json).object ?? JSONObject()
            var new = change(old)
            if let id = new["id"], id != old["id"] { throw invalidID("cannot be changed") }
            if new["id"] == nil, let id = old["id"] {
                new = JSONObject([JSONObject.Member(name: "id", value: id)] + new.members)
            }
            row.json = DocumentJSON.encode(.object(new))
            row.version += 1
            row.updated = commit.now
            try store.documents.replace(row)
            try commit.record(.document, row.number, audience: .everyone, version: row.version, in: store)
            return .existing(row.json)
        }
    }

    private static func delete(_ call: inout Call) throws(Problem) -> Reply? {
        let current = call
        try call.write { store, commit in
            var row = try existing(current, in: store)
            try current.checkConditions(on: representation(of: row, current), version: row.version, isRequired: false)
            row.version += 1
            row.updated = commit.now
            try store.documents.delete(row)
            try commit.record(
                .document,
                row.number,
                deleted: true,
                audience: .everyone,
                version: row.version,
                in: store
            )
        }
        return .noContent
    }

    private static func invalidID(_ detail: String) -> Problem {
        ProblemType.validationFailed(
            "`id` \(detail).",
            errors: [Problem.FieldError(pointer: "/id", detail: detail)]
        )
    }
}

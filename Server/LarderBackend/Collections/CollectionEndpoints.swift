import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// The API of the user's own collections: lists, documents, the change feed and live events, for everyone without a session.
enum CollectionEndpoints {
    static let routes: [Route] = [
        Route(.get, "/", .ignored, index),
        Route(.get, "/changes", .ignored, ChangeEndpoints.read),
        Route(.get, "/live", .ignored, live),
        Route(.get, "/{collection}", .ignored, read),
        Route(.post, "/{collection}", .ignored, create),
        Route(.put, "/{collection}", .ignored, replace),
        Route(.patch, "/{collection}", .ignored, patch),
        Route(.get, "/{collection}/{id}", .ignored, read),
        Route(.put, "/{collection}/{id}", .ignored, replace),
        Route(.patch, "/{collection}/{id}", .ignored, patch),
        Route(.delete, "/{collection}/{id}", .ignored, delete),
        Route(.get, "/{collection}/{id}/{children}", .ignored, children),
        Route(.post, "/{collection}/{id}/{children}", .ignored, create),
    ]

    private static func live(_ call: Call) throws(Problem) -> Reply? {
        try call.request.isWebSocketUpgrade ? LiveEndpoints.webSocket(call) : LiveEndpoints.eventStream(call)
    }

    /// The first segments of the server's own paths, which no collection can have as its name.
    static let reserved: Set<String> = ["changes", "live", "problems", "healthz", "w", "echo"]

    /// The detail of the 404 for a collection that does not exist, with the most similar name.
    ///
    /// - Parameter route: the most similar custom route.
    static func reasonMissing(_ name: String, in world: World, or route: String? = nil) -> String {
        let nearest = NearestName.similar(to: name, in: world.collections).first.map { "/\($0)" } ?? route
        let suggestion = nearest.map { " Did you mean \($0)?" } ?? ""
        return "There is no collection '\(name.prefix(64))'.\(suggestion) GET / lists all."
    }

    // MARK: Reading

    private static func index(_ call: Call) throws(Problem) -> Reply? {
        let names = call.world.collections + ["changes", "live"]
        let members = names.map { JSONObject.Member(name: $0, value: .string("/\($0)")) }
        return try call.reply(representation(JSONValue.object(JSONObject(members)).encoded))
    }

    /// A document, or the list of a collection.
    private static func read(_ call: Call) throws(Problem) -> Reply? {
        try call.reply { store in
            let name = call.parameters[0]
            guard try call.parameters.count > 1 || collection(name, call, in: store).isSingular else {
                return try page(CollectionQuery(call, of: name), in: store)
            }
            var row = try existing(call, in: store)
            row.json = try CollectionRelations.embedding(names(in: "_embed", call), in: row.json, of: name, store)
            return representation(row.json, modified: call.modification(row.updated))
        }
    }

    /// `GET /posts/1/comments`: the comments whose `postId` is 1.
    private static func children(_ call: Call) throws(Problem) -> Reply? {
        try call.reply { store in
            let (parent, name) = (call.parameters[0], call.parameters[2])
            _ = try existing(call, in: store)
            _ = try collection(name, call, in: store)
            let key = CollectionRelations.foreignKey(parent)
            return try page(CollectionQuery(call, of: name, where: key, is: call.parameters[1]), in: store)
        }
    }

    private static func page(_ query: CollectionQuery, in store: Store) throws -> Representation {
        let page = try CollectionPage(query, in: store)
        return representation(page.body, lines: page.lines)
    }

    /// The names of collections in a parameter, which may be repeated.
    private static func names(in parameter: String, _ call: Call) -> [String] {
        call.query.items.filter { $0.name == parameter }.flatMap { $0.value.split(separator: ",").map { String($0) } }
    }

    private static func representation(
        _ body: [UInt8],
        modified: Modification? = nil,
        lines: Fields = [:]
    ) -> Representation {
        Representation(
            body: body,
            cacheControl: CachePolicy.revalidate,
            vary: "Origin",
            modified: modified,
            lines: lines
        )
    }

    private static func collection(_ name: String, _ call: Call, in store: Store) throws -> CollectionRow {
        guard let collection = try store.documents.collection(name) else {
            throw ProblemType.notFound(reasonMissing(name, in: call.world))
        }
        return collection
    }

    /// The document of the path.
    private static func existing(_ call: Call, in store: Store) throws -> DocumentRow {
        let (name, id) = (call.parameters[0], call.parameters.count > 1 ? call.parameters[1] : "")
        if try !collection(name, call, in: store).isSingular, id.isEmpty {
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

    // MARK: Writing

    /// `POST /comments`, and `POST /posts/1/comments`: a comment with `postId` 1.
    private static func create(_ call: Call) throws(Problem) -> Reply? {
        let name = call.parameters.count > 1 ? call.parameters[2] : call.parameters[0]
        let parent = try call.read { store -> JSONObject.Member? in
            let parent = call.parameters.count > 1 ? try existing(call, in: store) : nil
            guard try !collection(name, call, in: store).isSingular else {
                throw ProblemType.methodNotAllowed(
                    "/\(name) is one document. Replace it with PUT or change it with PATCH.",
                    fields: [.allow: "GET, HEAD, OPTIONS, PATCH, PUT"]
                )
            }
            return try parent.map { row in
                let id = try JSONParser.parse(row.json)["id"] ?? .null
                return JSONObject.Member(name: CollectionRelations.foreignKey(call.parameters[0]), value: id)
            }
        }
        var body = try call.jsonObject()
        if let parent { body[parent.name] = parent.value }
        let content = body
        let wanted = content["id"].flatMap { DocumentID($0) }
        if content["id"] != nil, wanted == nil { throw invalidID("must be an integer or a text of 1 to 200 bytes") }
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            var document = content
            let id = try wanted ?? newID(name, call.world.seed, in: store)
            if wanted == nil {
                document = JSONObject([JSONObject.Member(name: "id", value: id.json)] + content.members)
            } else if try store.documents.find(name, id.text) != nil {
                throw ProblemType.documentExists(
                    "/\(name) has a document \(id.text). Replace it with PUT, or send no `id` to get a new one."
                )
            }
            let row = try store.documents.add(id, JSONValue.object(document).encoded, to: name, at: commit.now)
            try commit.record(.document, row.number, audience: .everyone, version: row.version, in: store)
            return .created(at: "/\(name)/\(QueryString.percentEncoded(id.text))", row.json)
        }
    }

    /// The next number, or a text that follows from the world's seed.
    private static func newID(_ name: String, _ seed: UInt64, in store: Store) throws -> DocumentID {
        guard let collection = try store.documents.collection(name) else { return DocumentID(1) }
        if collection.isNumbered {
            guard collection.lastNumber < .max else {
                throw invalidID("is required, because the greatest number is taken")
            }
            let next = DocumentID(max(collection.lastNumber, 0) + 1)
            if try store.documents.find(name, next.text) == nil { return next }
        }
        var (attempt, id) = (collection.lastPlace, DocumentID(""))
        repeat {
            attempt += 1
            let hash = ContentHash.hash64(Array("\(name) \(attempt)".utf8).span, seed: seed)
            id = DocumentID(String(hash, radix: 16))
        } while try store.documents.find(name, id.text) != nil
        return id
    }

    private static func replace(_ call: Call) throws(Problem) -> Reply? {
        let body = try call.jsonObject()
        return try edit(call) { _ in body }
    }

    private static func patch(_ call: Call) throws(Problem) -> Reply? {
        let patch = try call.jsonObject(orMediaType: "application/merge-patch+json")
        return try edit(call) { DocumentJSON.merge(patch, into: $0) }
    }

    private static func edit(_ call: Call, _ change: (JSONObject) -> JSONObject) throws(Problem) -> Reply? {
        try Idempotency.run(call, isKeyRequired: false) { store, commit in
            var row = try existing(call, in: store)
            let old = try JSONParser.parse(row.json).object ?? JSONObject()
            try call.checkConditions(
                on: representation(row.json, modified: call.modification(row.updated)),
                version: row.version,
                isRequired: false
            )
            var new = change(old)
            if let id = new["id"], id != old["id"] { throw invalidID("cannot be changed") }
            if new["id"] == nil, let id = old["id"] {
                new = JSONObject([JSONObject.Member(name: "id", value: id)] + new.members)
            }
            row.json = JSONValue.object(new).encoded
            try update(&row, in: store, &commit)
            return .existing(row.json)
        }
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        try call.write { store, commit in
            var row = try existing(call, in: store)
            try call.checkConditions(
                on: representation(row.json, modified: call.modification(row.updated)),
                version: row.version,
                isRequired: false
            )
            try update(&row, isDeleted: true, in: store, &commit)
            // json-server deletes the children of `_dependent` too.
            for name in names(in: "_dependent", call) {
                _ = try collection(name, call, in: store)
                let (parent, id) = (call.parameters[0], call.parameters[1])
                for var child in try CollectionRelations.children(name, of: parent, id, in: store) {
                    try update(&child, isDeleted: true, in: store, &commit)
                }
            }
        }
        return .noContent
    }

    private static func update(
        _ row: inout DocumentRow,
        isDeleted: Bool = false,
        in store: Store,
        _ commit: inout Commit
    ) throws {
        row.version += 1
        row.updated = commit.now
        try store.documents.update(row, isDeleted: isDeleted)
        try commit.record(
            .document,
            row.number,
            deleted: isDeleted,
            audience: .everyone,
            version: row.version,
            in: store
        )
    }

    private static func invalidID(_ detail: String) -> Problem {
        ProblemType.validationFailed(
            "`id` \(detail).",
            errors: [Problem.FieldError(pointer: "/id", detail: detail)]
        )
    }
}

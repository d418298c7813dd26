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
    static let reserved: Set<String> = ["changes", "live", "problems", "healthz", "w"]

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
        let body = JSONValue.object(JSONObject(members)).encoded
        return try call.reply { _ in
            Representation(body: body, cacheControl: CachePolicy.revalidate, vary: "Origin")
        }
    }

    /// A document, or the list of a collection.
    private static func read(_ call: Call) throws(Problem) -> Reply? {
        try call.reply { store in
            let name = call.parameters[0]
            guard try call.parameters.count > 1 || collection(name, call, in: store).isSingular else {
                return try page(CollectionQuery(call, of: name), in: store)
            }
            var row = try existing(call, in: store)
            let related = try RelatedDocuments(names(in: "_embed", "_expand", of: call), of: name, in: store)
            try related.embed(in: &row)
            // A change of a related document changes the representation, too.
            return representation(of: row, related.isEmpty ? call.modification(row.updated) : nil)
        }
    }

    /// `GET /posts/1/comments`: the comments whose `postId` is 1.
    private static func children(_ call: Call) throws(Problem) -> Reply? {
        try call.reply { store in
            let (parent, name) = (call.parameters[0], call.parameters[2])
            _ = try existing(call, in: store)
            _ = try collection(name, call, in: store)
            return try page(CollectionQuery(call, of: name, below: (parent, call.parameters[1])), in: store)
        }
    }

    private static func page(_ query: CollectionQuery, in store: Store) throws -> Representation {
        let page = try CollectionPage(query, in: store)
        let cacheControl = CachePolicy.revalidate
        return Representation(body: page.body, cacheControl: cacheControl, vary: "Origin", lines: page.lines)
    }

    /// The names of collections in parameters, each once. Each costs a look at a whole collection.
    static func names(in parameters: String..., of call: Call) throws(Problem) -> [String] {
        var names: [String] = []
        for item in call.query.items where parameters.contains(item.name) {
            for name in item.value.split(separator: ",").map({ String($0) }) where !names.contains(name) {
                names.append(name)
                guard names.count <= 8 else { throw call.invalid(item.name, "must name at most 8 collections") }
            }
        }
        return names
    }

    private static func representation(of row: EntityRow, _ modified: Modification?) -> Representation {
        Representation(
            body: row.document,
            cacheControl: CachePolicy.revalidate,
            vary: "Origin",
            modified: modified
        )
    }

    private static func collection(_ name: String, _ call: Call, in store: Store) throws -> CollectionRow {
        guard let collection = try store.collections.find(name) else {
            throw ProblemType.notFound(reasonMissing(name, in: call.world))
        }
        return collection
    }

    /// The document of the path.
    private static func existing(_ call: Call, in store: Store) throws -> EntityRow {
        let (name, id) = (call.parameters[0], call.parameters.count > 1 ? call.parameters[1] : "")
        let collection = try collection(name, call, in: store)
        guard let row = try store.collections.document(id, in: collection) else {
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
        let body = try call.jsonObject()
        let wanted = body["id"].flatMap { DocumentID($0) }
        if body["id"] != nil, wanted == nil { throw invalidID("must be an integer or a text of 1 to 200 bytes") }
        return try Idempotency.run(call, isKeyRequired: false) { store, commit in
            var document = body
            if call.parameters.count > 1 {
                let parent = try existing(call, in: store)
                document[CollectionRelations.foreignKey(call.parameters[0])] = parent.members["id"]
            }
            let collection = try collection(name, call, in: store)
            let id = try wanted ?? newID(collection, call.world.seed, in: store)
            if wanted == nil {
                document = JSONObject([JSONObject.Member(name: "id", value: id.json)] + document.members)
            } else if try store.collections.document(id.text, in: collection) != nil {
                throw ProblemType.documentExists(
                    "/\(name) has a document \(id.text). Replace it with PUT, or send no `id` to get a new one."
                )
            }
            let row = try store.collections.newDocument(id, document, in: collection, at: commit.now)
            try commit.add(row, to: store)
            return .written(row.document, createdAt: "/\(name)/\(QueryString.percentEncoded(id.text))")
        }
    }

    /// The next number, or a text that follows from the world's seed.
    private static func newID(_ collection: CollectionRow, _ seed: UInt64, in store: Store) throws -> DocumentID {
        let next = try store.entities.next(.document).row
        var (attempt, id): (Int64, DocumentID) = (0, DocumentID(""))
        repeat {
            attempt += 1
            let hash = ContentHash.hash64(Array("\(collection.name) \(next + attempt)".utf8).span, seed: seed)
            let number = max(collection.lastNumber, 0) &+ attempt
            id = collection.isNumbered ? DocumentID(number) : DocumentID(String(hash, radix: 16))
        } while try store.collections.document(id.text, in: collection) != nil
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
            var row = try unchanged(call, in: store)
            let old = row.members["id"]
            row.members = change(row.members)
            if let id = row.members["id"], id != old { throw invalidID("cannot be changed") }
            if row.members["id"] == nil, let old {
                row.members = JSONObject([JSONObject.Member(name: "id", value: old)] + row.members.members)
            }
            try commit.save(row, in: store)
            return .written(row.document)
        }
    }

    private static func delete(_ call: Call) throws(Problem) -> Reply? {
        try call.write { store, commit in
            try commit.delete(unchanged(call, in: store), in: store)
            // json-server deletes the children of `_dependent` too.
            for name in try names(in: "_dependent", of: call) {
                _ = try collection(name, call, in: store)
                let (parent, id) = (call.parameters[0], call.parameters[1])
                for child in try CollectionRelations.children(name, of: parent, id, in: store) {
                    try commit.delete(child, in: store)
                }
            }
        }
        return .noContent
    }

    /// The document of the path, if the conditions of the request hold for it.
    private static func unchanged(_ call: Call, in store: Store) throws -> EntityRow {
        let row = try existing(call, in: store)
        let current = representation(of: row, call.modification(row.updated))
        try call.checkConditions(on: current, version: row.version, isRequired: false)
        return row
    }

    private static func invalidID(_ detail: String) -> Problem {
        ProblemType.validationFailed("`id` \(detail).", at: "/id", detail)
    }
}

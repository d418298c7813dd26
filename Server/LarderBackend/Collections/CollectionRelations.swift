import LarderCoding
import LarderHTTP

/// Relations between collections, as json-server reads them from names: a document of `comments` with `postId` belongs to one of `posts`.
enum CollectionRelations {
    /// `post` for `posts`, `category` for `categories`.
    static func singular(_ name: String) -> String {
        if name.hasSuffix("ies") { return name.dropLast(3) + "y" }
        return name.hasSuffix("s") ? String(name.dropLast()) : name
    }

    /// The member of a document that names its parent in a collection.
    static func foreignKey(_ collection: String) -> String { singular(collection) + "Id" }

    /// The documents of a collection that belong to one of another. json-server has texts as identifiers where files have numbers.
    static func children(_ name: String, of parent: String, _ id: String, in store: Store) throws -> [DocumentRow] {
        let key = foreignKey(parent)
        return try store.documents.documents(name).filter {
            try JSONParser.parse($0.json)[key].flatMap { DocumentID($0) }?.text == id
        }
    }

    /// The document with the related ones in it: for the name of a collection its children, for a singular name its parent.
    static func embedding(_ names: [String], in json: [UInt8], of collection: String, _ store: Store) throws -> [UInt8]
    {
        guard !names.isEmpty, var object = try JSONParser.parse(json).object else { return json }
        let collections = try store.documents.collections()
        for name in names {
            if collections.contains(name), let id = object["id"].flatMap({ DocumentID($0) }) {
                let rows = try children(name, of: collection, id.text, in: store)
                object[name] = .array(try rows.map { try JSONParser.parse($0.json) })
            } else if let parents = collections.first(where: { singular($0) == name }) {
                guard let id = object[name + "Id"].flatMap({ DocumentID($0) }) else { continue }
                object[name] = try store.documents.find(parents, id.text).map { try JSONParser.parse($0.json) }
            } else {
                throw ProblemType.invalidParameter(
                    "`_embed` must name a collection, or one of its documents, such as `comments` or `post`.",
                    errors: [Problem.FieldError(pointer: "_embed", detail: "is not the name of a collection")]
                )
            }
        }
        return JSONValue.object(object).encoded
    }
}

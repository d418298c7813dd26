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
    static func children(_ name: String, of parent: String, _ id: String, in store: Store) throws -> [EntityRow] {
        let key = foreignKey(parent)
        return try store.collections.documents(name).filter { $0.members[key].flatMap { DocumentID($0) }?.text == id }
    }

    /// The document with the related ones in it: for the name of a collection its children, for a singular name its parent.
    static func embed(_ names: [String], in document: inout EntityRow, of collection: String, _ store: Store) throws {
        let collections = try names.isEmpty ? [] : store.collections.names()
        for name in names {
            if collections.contains(name), let id = document.members["id"].flatMap({ DocumentID($0) }) {
                let rows = try children(name, of: collection, id.text, in: store)
                document.members[name] = .array(rows.map { .object($0.members) })
            } else if let parents = collections.first(where: { singular($0) == name }) {
                guard let id = document.members[name + "Id"].flatMap({ DocumentID($0) }) else { continue }
                let parent = try store.collections.find(parents).flatMap {
                    try store.collections.document(id.text, in: $0)
                }
                document.members[name] = parent.map { .object($0.members) }
            } else {
                throw ProblemType.invalidParameter(
                    "`_embed` must name a collection, or one of its documents, such as `comments` or `post`.",
                    at: "_embed",
                    "is not the name of a collection"
                )
            }
        }
    }
}

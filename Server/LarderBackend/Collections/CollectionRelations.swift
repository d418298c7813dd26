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

}

/// The documents that `_embed` puts into those of a collection: for the name of a collection the children, for a singular name the parent.
/// Each collection of children is read once.
struct RelatedDocuments {
    private let store: Store
    /// By the name of the collection, and by the identifier of the parent.
    private var children: [(name: String, documents: [String: [JSONValue]])] = []
    /// The names of the member and of the collection.
    private var parents: [(name: String, collection: CollectionRow)] = []

    init(_ names: [String], of collection: String, in store: Store) throws {
        self.store = store
        let collections = try names.isEmpty ? [] : store.collections.names()
        let key = CollectionRelations.foreignKey(collection)
        for name in names {
            if collections.contains(name) {
                var documents: [String: [JSONValue]] = [:]
                for row in try store.collections.documents(name) {
                    guard let parent = row.members[key].flatMap({ DocumentID($0) }) else { continue }
                    documents[parent.text, default: []].append(.object(row.members))
                }
                children.append((name, documents))
            } else if let found = try collections.first(where: { CollectionRelations.singular($0) == name }).flatMap({
                try store.collections.find($0)
            }) {
                parents.append((name, found))
            } else {
                throw ProblemType.invalidParameter(
                    "`_embed` must name a collection, or one of its documents, such as `comments` or `post`.",
                    at: "_embed",
                    "is not the name of a collection"
                )
            }
        }
    }

    var isEmpty: Bool { children.isEmpty && parents.isEmpty }

    func embed(in document: inout EntityRow) throws {
        for (name, documents) in children {
            guard let id = document.members["id"].flatMap({ DocumentID($0) }) else { continue }
            document.members[name] = .array(documents[id.text] ?? [])
        }
        for (name, collection) in parents {
            guard let id = document.members[name + "Id"].flatMap({ DocumentID($0) }) else { continue }
            let parent = try store.collections.document(id.text, in: collection)
            document.members[name] = parent.map { .object($0.members) }
        }
    }
}

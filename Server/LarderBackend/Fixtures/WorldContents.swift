import LarderCoding
import LarderTime

/// The initial contents of a world, read from files or generated.
///
/// Rows are positive and ascend with time within their kind.
package struct WorldContents: Sendable {
    struct Transfer: Sendable {
        var row: Int64
        var at: WallTime
        var from: Int64
        var to: Int64
        var minorUnits: Int64
        var note: String
    }

    /// A collection of the user's own documents, as objects with their identifiers.
    struct Collection: Sendable {
        var name: String
        var isNumbered: Bool
        /// Whether it is one document without an identifier.
        var isSingular = false
        var documents: [(id: DocumentID, members: JSONObject)] = []
    }

    /// The source of the contents, for display.
    var origin: String
    /// The time at which the history ends.
    var instant: WallTime
    var people: [EntityRow] = []
    var posts: [(post: EntityRow, likedBy: [Int64])] = []
    /// Without balances.
    var accounts: [EntityRow] = []
    var transfers: [Transfer] = []
    var conversations: [(conversation: EntityRow, members: [Int64])] = []
    var messages: [EntityRow] = []
    var tasks: [EntityRow] = []
    var collections: [Collection] = []
    package internal(set) var images = ImageCatalogue.empty

    /// The same collections without documents.
    package var withoutDocuments: WorldContents {
        var contents = self
        for index in contents.collections.indices { contents.collections[index].documents = [] }
        return contents
    }
}

extension WorldContents {
    /// Differs between other names, identifiers or documents of collections.
    package var fingerprint: UInt64 {
        collections.reduce(1) { hash, collection in
            collection.documents.reduce(ContentHash.hash64(Array(collection.name.utf8).span, seed: hash)) {
                hash,
                document in
                ContentHash.hash64(JSONValue.object(document.members).encoded.span, seed: hash)
            }
        }
    }

    package var collectionTexts: [CollectionText] {
        collections.map { CollectionText($0.name, $0.documents.map(\.members), isSingular: $0.isSingular) }
    }

    /// The collections with the numbers of their documents.
    package var collectionSummary: String {
        collections.map { "/\($0.name) (\($0.documents.count))" }.joined(separator: ", ")
    }
}

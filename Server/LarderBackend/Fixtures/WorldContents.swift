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

    struct Conversation: Sendable {
        var row: Int64
        var title: String?
        var members: [Int64]
        var created: WallTime
    }

    /// A collection of the user's own documents, as objects with their identifiers.
    struct Collection: Sendable {
        var name: String
        var isNumbered: Bool
        /// Whether it is one document without an identifier.
        var isSingular = false
        var documents: [(id: DocumentID, json: [UInt8])] = []
    }

    /// The source of the contents, for display.
    var origin: String
    /// The time at which the history ends.
    var instant: WallTime
    var people: [(profile: ProfileRow, handle: String)] = []
    var posts: [(post: PostRow, likedBy: [Int64])] = []
    /// With their initial balances.
    var accounts: [AccountRow] = []
    var transfers: [Transfer] = []
    var conversations: [Conversation] = []
    var messages: [MessageRow] = []
    var tasks: [TaskRow] = []
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
                ContentHash.hash64(document.json.span, seed: hash)
            }
        }
    }

    package var collectionTexts: [CollectionText] {
        collections.map { CollectionText($0.name, $0.documents.map(\.json), isSingular: $0.isSingular) }
    }

    /// The collections with the numbers of their documents.
    package var collectionSummary: String {
        collections.map { "/\($0.name) (\($0.documents.count))" }.joined(separator: ", ")
    }
}

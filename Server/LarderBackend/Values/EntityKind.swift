/// The kinds of entity, with the prefixes of their public identifiers.
///
/// Raw values are stored in the change feed and in cursors and are never reused.
enum EntityKind: Int64, Sendable, CaseIterable {
    case profile = 1
    case post = 2
    case account = 3
    case transaction = 4
    case conversation = 5
    case message = 6
    case transfer = 7
    case task = 8
    /// A document of a collection (see `CollectionEndpoints`).
    case document = 9

    /// The name of the kind in JSON (`type`) and in `types=` filters.
    var name: StaticString { texts.name }

    /// The prefix of public identifiers of this kind.
    var prefix: StaticString { texts.prefix }

    private var texts: (name: StaticString, prefix: StaticString) {
        switch self {
        case .profile: ("profile", "user_")
        case .post: ("post", "post_")
        case .account: ("account", "acct_")
        case .transaction: ("transaction", "txn_")
        case .conversation: ("conversation", "conv_")
        case .message: ("message", "msg_")
        case .transfer: ("transfer", "xfer_")
        case .task: ("task", "task_")
        case .document: ("document", "")
        }
    }

    /// The kinds in the change feed. A transfer appears as changes of accounts and transactions.
    static let inChangeFeed: [EntityKind] = filterable + [.document]

    /// The kinds in `types=` filters.
    static let filterable: [EntityKind] = [.profile, .post, .account, .transaction, .conversation, .message, .task]

    /// The kind with this name in a `types=` filter.
    init?(named name: some StringProtocol) {
        guard let kind = Self.allCases.first(where: { $0.name.description == name }) else { return nil }
        self = kind
    }
}

/// The identity of an entity: kind and row. Its public form is the kind's prefix and a decimal number, as in `post_1042`.
struct EntityID: Sendable, Hashable {
    let kind: EntityKind
    let row: Int64

    init(_ kind: EntityKind, _ row: Int64) {
        self.kind = kind
        self.row = row
    }

    /// Parses a public identifier of the given kind: the prefix and a canonical positive number.
    init?(_ kind: EntityKind, parsing text: some StringProtocol) {
        let prefix = kind.prefix.description
        guard text.hasPrefix(prefix) else { return nil }
        let digits = text.dropFirst(prefix.count)
        guard let first = digits.utf8.first, first != UInt8(ascii: "0"), digits.utf8.count <= 18,
            digits.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), let row = Int64(digits)
        else { return nil }
        self.init(kind, row)
    }

    var text: String { "\(kind.prefix)\(row)" }
}

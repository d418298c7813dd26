/// The kinds of entity that the backend keeps, with the prefix that their public identifiers carry.
///
/// Raw values are stored in the change feed and in cursors: they are never reused.
package enum EntityKind: Int64, Sendable, CaseIterable {
    case profile = 1
    case post = 2
    case account = 3
    case transaction = 4
    case conversation = 5
    case message = 6
    case transfer = 7

    /// The word used for this kind in JSON (`type`) and in `types=` filters.
    package var name: StaticString {
        switch self {
        case .profile: "profile"
        case .post: "post"
        case .account: "account"
        case .transaction: "transaction"
        case .conversation: "conversation"
        case .message: "message"
        case .transfer: "transfer"
        }
    }

    /// What a public identifier of this kind begins with.
    package var prefix: StaticString {
        switch self {
        case .profile: "user_"
        case .post: "post_"
        case .account: "acct_"
        case .transaction: "txn_"
        case .conversation: "conv_"
        case .message: "msg_"
        case .transfer: "xfer_"
        }
    }

    /// The kinds that the change feed carries. A transfer is told through its accounts and transactions.
    package static let inChangeFeed: [EntityKind] = [.profile, .post, .account, .transaction, .conversation, .message]

    /// The kind with this name, as a `types=` filter spells it.
    package init?(named name: some StringProtocol) {
        guard let kind = Self.allCases.first(where: { $0.name.description == name }) else { return nil }
        self = kind
    }
}

/// The identity of an entity: its kind and its row. Public form: the kind's prefix and a decimal number, as in `post_1042`.
package struct EntityID: Sendable, Hashable {
    package let kind: EntityKind
    package let row: Int64

    package init(_ kind: EntityKind, _ row: Int64) {
        self.kind = kind
        self.row = row
    }

    /// Reads a public identifier of the given kind: nothing but the prefix and a canonical positive number is one.
    package init?(_ kind: EntityKind, parsing text: some StringProtocol) {
        let prefix = kind.prefix.description
        guard text.hasPrefix(prefix) else { return nil }
        let digits = text.dropFirst(prefix.count)
        guard let first = digits.utf8.first, first != UInt8(ascii: "0"), digits.utf8.count <= 18,
            digits.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), let row = Int64(digits)
        else { return nil }
        self.init(kind, row)
    }

    package var text: String { "\(kind.prefix)\(row)" }
}

/// The readers of a change: everyone, everyone who is signed in, one person, or the members of a conversation.
///
/// Stored in the change feed as one integer: 0, the least integer, the person's row, or the conversation's row negated.
enum Audience: Sendable, Hashable {
    case everyone
    case signedIn
    case user(Int64)
    case conversation(Int64)

    init(stored: Int64) {
        switch stored {
        case 0: self = .everyone
        case .min: self = .signedIn
        case 1...: self = .user(stored)
        default: self = .conversation(-stored)
        }
    }

    var stored: Int64 {
        switch self {
        case .everyone: 0
        case .signedIn: .min
        case .user(let row): row
        case .conversation(let row): -row
        }
    }
}

/// The part of the change feed that one reader may see: public, the team's, their own, and their conversations'.
struct ReaderScope: Sendable, Hashable {
    /// The reader's row; 0 for an anonymous reader.
    let viewer: Int64
    let conversations: Set<Int64>

    static let anonymous = ReaderScope(viewer: 0, conversations: [])

    func includes(_ audience: Audience) -> Bool {
        switch audience {
        case .everyone: true
        case .signedIn: viewer != 0
        case .user(let row): row == viewer
        case .conversation(let row): conversations.contains(row)
        }
    }
}

/// A keyset position in a list, opaque to clients: the row next to which a page begins.
///
/// It is bound to its list, so that a cursor of one conversation cannot be used in another. Insertions and deletions elsewhere
/// do not move it, and neither does the deletion of its row.
struct Cursor: Hashable, Sendable {
    /// The lists with cursors. Raw values are part of issued cursors and are never reused.
    enum List: UInt64 {
        case feed = 1
        case authoredPosts = 2
        case transactions = 3
        case conversations = 4
        case messages = 5
        case profiles = 6
        case tasks = 7
        case foundPosts = 8
        case foundPeople = 9
    }

    let list: List
    /// The account, conversation or author of the list, or a digest of its filter and order; 0 if there is only one such
    /// list.
    let owner: Int64
    let row: Int64
    /// The value that the list is sorted by before the row; 0 for a list sorted by rows.
    let key: Int64

    init(_ list: List, owner: Int64 = 0, row: Int64, key: Int64 = 0) {
        self.list = list
        self.owner = owner
        self.row = row
        self.key = key
    }

    /// Parses a cursor; nil for text that this server cannot have issued. The row is bounded, so that a forged cursor cannot
    /// cause an overflow.
    init?(parsing text: String) {
        guard let values = OpaqueText.decode(text, format: Self.format, count: 4), let list = List(rawValue: values[0]),
            let owner = Int64(exactly: values[1]), let row = Int64(exactly: values[2]), row < .max
        else { return nil }
        self.init(list, owner: owner, row: row, key: Int64(bitPattern: values[3]))
    }

    var text: String {
        OpaqueText.encode(
            format: Self.format,
            [list.rawValue, UInt64(owner), UInt64(row), UInt64(bitPattern: key)]
        )
    }

    private static let format: UInt8 = 3
}

/// The part of a list that a request asks for.
enum PageStart: Hashable, Sendable {
    case newest
    /// The items older than a row.
    case after(Int64)
    /// The items newer than a row, nearest first; the page itself is sorted newest first.
    case before(Int64)

    /// The row next to which the page begins.
    var row: Int64 {
        switch self {
        case .newest: .max
        case .after(let row), .before(let row): row
        }
    }
}

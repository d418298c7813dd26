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
    }

    let list: List
    /// The account, conversation or author of the list; 0 if there is only one such list.
    let owner: Int64
    let row: Int64

    init(_ list: List, owner: Int64 = 0, row: Int64) {
        self.list = list
        self.owner = owner
        self.row = row
    }

    /// Parses a cursor; nil for text that this server cannot have issued. The row is bounded, so that a forged cursor cannot
    /// cause an overflow.
    init?(parsing text: String) {
        guard let values = OpaqueText.decode(text, format: Self.format, count: 3), let list = List(rawValue: values[0]),
            let owner = Int64(exactly: values[1]), let row = Int64(exactly: values[2]), row < .max
        else { return nil }
        self.init(list, owner: owner, row: row)
    }

    var text: String { OpaqueText.encode(format: Self.format, numbers, count: 3) }

    func append(to text: inout [UInt8]) { OpaqueText.append(format: Self.format, numbers, count: 3, to: &text) }

    private var numbers: OpaqueText.Numbers { [list.rawValue, UInt64(owner), UInt64(row), 0, 0, 0, 0, 0] }

    private static let format: UInt8 = 2
}

/// The part of a list that a request asks for.
enum PageStart: Hashable, Sendable {
    /// The newest items.
    case newest
    /// The items older than a row.
    case after(Int64)
    /// The items newer than a row, nearest first; the page itself is sorted newest first.
    case before(Int64)
}

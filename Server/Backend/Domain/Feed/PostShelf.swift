import LarderSQLite

/// Posts that were sent before, kept as they are sent, with the order in which the feed has them: a page of them costs no
/// statement and no formatting.
///
/// It is never older than the table, because it is told of every change before the table is: what was rolled back is then
/// only read once more. It must not be looked at or filled inside a transaction, where the table shows what may yet be
/// undone. Bounded; a post gives way to another that was read twice and whose number falls on its place.
struct PostShelf {
    private struct Place {
        /// 0 while nothing is known.
        var row: Int64 = 0
        /// The next older post of the feed: 0 where there is none, `unknown` where nobody has looked.
        var older = Self.unknown
        var post: ShelvedPost?

        static let unknown: Int64 = -1
    }

    /// How the shelf goes on behind the posts that it gave.
    enum End {
        /// There are no more posts.
        case last
        /// There are more, and no more were wanted.
        case more
        /// This post comes next and must be read, because it has changed.
        case changed(Int64)
        /// What comes next is not known.
        case unknown
    }

    /// Found by a row's number modulo their count, which is a power of two. They grow when one is wanted twice.
    private var places: [Place] = []
    /// Numbers of posts that were read once, by themselves modulo their count.
    private var seen: [Int64] = []
    private let isOpen: Bool
    /// The lowest and highest number in use, while it is known.
    var extent: ClosedRange<Int64>?

    private static let countMaximum = 1_024
    private static let seenCount = 2_048
    /// A longer post is not kept.
    private static let bytesMaximum = 4_096

    /// - Parameter isOpen: whether anything is to be kept.
    init(isOpen: Bool = true) { self.isOpen = isOpen }

    // MARK: Looking

    /// Takes posts in the feed's order, from where a page stands until it is full.
    func take(into page: inout FeedPage) throws(SQLiteError) -> End {
        while let next = next(below: page.end) {
            guard next > 0 else { return .last }
            guard !page.isFull else { return .more }
            guard let post = post(next) else { return .changed(next) }
            try page.add(post)
        }
        return .unknown
    }

    /// The post with that number, if it is here as it is now.
    func post(_ row: Int64) -> ShelvedPost? {
        guard let index = index(of: row) else { return nil }
        return places[index].post
    }

    /// Whether it is known what the feed has behind that post.
    func knowsOrder(behind row: Int64) -> Bool { next(below: row) != nil }

    /// The next post of the feed below that number: 0 where there is none, nil where that is not known.
    private func next(below row: Int64) -> Int64? {
        if let extent, row > extent.upperBound { return extent.upperBound }
        guard let index = index(of: row), places[index].older != Place.unknown else { return nil }
        return places[index].older
    }

    private func index(of row: Int64) -> Int? {
        guard !places.isEmpty else { return nil }
        let index = place(of: row)
        return places[index].row == row ? index : nil
    }

    private func place(of row: Int64) -> Int { Int(truncatingIfNeeded: row) & (places.count - 1) }

    // MARK: Filling

    /// Whether a post that was read is to be put here: not when it is read for the first time, so that who reads through the
    /// whole feed neither drives out what many read nor pays for keeping what nobody will read again.
    mutating func wants(_ row: Int64) -> Bool {
        guard isOpen else { return false }
        if index(of: row) != nil { return true }
        if seen.isEmpty { seen = Array(repeating: 0, count: Self.seenCount) }
        let index = Int(truncatingIfNeeded: row) & (Self.seenCount - 1)
        defer { seen[index] = row }
        return seen[index] == row
    }

    mutating func put(_ post: ShelvedPost) {
        guard post.byteCount <= Self.bytesMaximum else { return }
        if places.isEmpty { places = Array(repeating: Place(), count: 64) }
        while places[place(of: post.row)].row != post.row, places[place(of: post.row)].row != 0,
            places.count < Self.countMaximum
        {
            grow()
        }
        let index = place(of: post.row)
        if places[index].row != post.row { places[index] = Place(row: post.row) }
        places[index].post = post
    }

    /// Notes which post follows another in the feed, newest first; 0 for none.
    mutating func link(_ row: Int64, to older: Int64) {
        guard let index = index(of: row) else { return }
        places[index].older = older
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: Place(), count: old.count * 2)
        for place in old where place.row != 0 { places[self.place(of: place.row)] = place }
    }

    // MARK: Changes

    /// A post is about to change.
    mutating func willChange(_ row: Int64) {
        guard let index = index(of: row) else { return }
        places[index].post = nil
    }

    /// A post is about to be added in front of all others.
    mutating func willAdd() { extent = nil }

    /// A post is about to go, and with it the order of its neighbours.
    mutating func willDelete() {
        extent = nil
        places.removeAll()
    }
}

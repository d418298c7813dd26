import LarderCoding
import LarderStorage
import LarderTime

/// A paged list as a sequence of runs: consecutive items in the server's order, with the cursor that the run was requested by, and the age,
/// the validator and the order of the reply that it came with. A run continues the one above it, or items are missing between them.
///
/// A value without I/O. In the index, the start of a run is a member among the items, so that code that removes an item from the index
/// (an event or an edit) moves nothing else.
struct RunList: Sendable, Equatable {
    /// How a run other than the newest one begins.
    struct Start: Sendable, Hashable {
        /// The number that identifies the gap above the run for as long as it exists; nil if no item is missing there.
        var gap: Int?
        /// The cursor of the page that follows what is above: that of the run, or of the first missing page. Nil if it is not known, or if the
        /// server no longer knows it.
        var cursor: String?

        static func joined(_ cursor: String?) -> Start { Start(cursor: cursor) }

        static func gap(_ number: Int, cursor: String?) -> Start { Start(gap: number, cursor: cursor) }
    }

    /// An item that was inserted here and that no page has confirmed.
    struct Insertion: Sendable, Hashable {
        /// The time of the insertion in nanoseconds since 1970, without the two lowest bits.
        var insertedAt: Int64
        /// Whether it was created on this device.
        var isOwn: Bool
        /// Whether the server has stated its place (`CacheUpdate.insertPage`). The neighbors of other inserted items may be others on the
        /// server, so they do not join runs.
        var isPlaced: Bool

        init(insertedAt: Int64, isOwn: Bool = false, isPlaced: Bool = false) {
            self.insertedAt = insertedAt & ~3
            self.isOwn = isOwn
            self.isPlaced = isPlaced
        }

        /// Whether it stays in front of the items of others until the server states its place.
        var isWaiting: Bool { isOwn && !isPlaced }

        /// Decodes the mark of a member.
        init(mark: Int64) { self.init(insertedAt: mark, isOwn: mark & 1 != 0, isPlaced: mark & 2 != 0) }

        var mark: Int64 { insertedAt | (isOwn ? 1 : 0) | (isPlaced ? 2 : 0) }
    }

    struct Item: Sendable, Hashable {
        let key: EntityKey
        /// Nil if a page has confirmed it.
        var insertion: Insertion?

        init(_ key: EntityKey, _ insertion: Insertion? = nil) {
            self.key = key
            self.insertion = insertion
        }

        /// Whether it was created on this device and is not confirmed by a page.
        var isOwn: Bool { insertion?.isOwn ?? false }

        /// Whether its neighbors are those that it has on the server.
        var isPlaced: Bool { insertion?.isPlaced ?? true }
    }

    struct Run: Sendable, Equatable {
        /// Nil for the newest run, which begins the list.
        var start: Start?
        var items: [Item] = []
        /// Those of the newest run are the list's own, and are not stored with it.
        var facts = PageFacts(.none)

        /// Whether one of its items has the neighbors that it has on the server.
        var hasPlaced: Bool { items.contains(where: \.isPlaced) }

        /// The upper part of the run.
        func prefix(_ count: Int) -> Run {
            var part = Run(start: start, items: Array(items[..<count]), facts: facts)
            // The cursor is that of the first item whose place is known.
            if count > 0, !part.hasPlaced { part.facts.newerCursor = nil }
            return part
        }

        /// The lower part of the run as a run of the same age, whose cursor is not known.
        func suffix(from index: Int) -> Run {
            var rest = Run(start: .joined(nil), items: Array(items[index...]), facts: facts)
            rest.facts.confirmation = nil
            if index > 0 { rest.facts.newerCursor = nil }
            return rest
        }

        /// Adds the items of the run behind it. Both are as old as the older one, and an answer that began before one of them changes neither.
        mutating func join(_ other: Run) {
            items += other.items
            facts.times = facts.times.mixed(with: other.facts.times)
            facts.confirmation = nil
            facts.asked = max(facts.asked, other.facts.asked)
        }

        /// Begins at the start of the run above, which has no items left.
        mutating func begin(like empty: Run) {
            guard let upper = empty.start, let lower = start else { return }
            if lower.gap == nil { facts.newerCursor = empty.facts.newerCursor }
            if upper.gap != nil {
                start = upper
            } else if lower.gap == nil {
                start?.cursor = upper.cursor ?? lower.cursor
            }
            // A validator belongs to a cursor.
            if start != lower { facts.confirmation = nil }
        }
    }

    /// What follows the last item.
    enum Tail: Sendable, Hashable {
        /// Not known yet.
        case unknown
        case cursor(String)
        case end

        /// The tail at the start of what is no longer in the list.
        init(cursor: String?) { self = cursor.map { .cursor($0) } ?? .unknown }

        var cursor: String? {
            guard case .cursor(let cursor) = self else { return nil }
            return cursor
        }
    }

    /// The place of an item.
    struct Place: Sendable, Hashable {
        var run = 0
        var item = 0
    }

    /// In order, the newest first. There is always one, which has no items if the list begins with a gap.
    var runs: [Run]
    /// The part that is stored beside the members.
    var details: Details

    var tail: Tail {
        get { details.tail }
        set { details.tail = newValue }
    }

    /// Notes that the newest run came with a page of a feed.
    mutating func noteFed(_ stamp: Stamp) {
        details.fed = stamp
        runs[0].facts.asked = max(runs[0].facts.asked, stamp)
    }

    mutating func newGap(_ cursor: String?) -> Start {
        details.lastGap += 1
        return .gap(details.lastGap, cursor: cursor)
    }

    var items: [EntityKey] { runs.flatMap { $0.items.map(\.key) } }

    var hasGap: Bool { runs.contains { $0.start?.gap != nil } }

    /// The place of the first item with a property.
    func firstPlace(where isMatch: (Item) -> Bool) -> Place? {
        for (run, known) in runs.enumerated() {
            if let item = known.items.firstIndex(where: isMatch) { return Place(run: run, item: item) }
        }
        return nil
    }

    func place(of key: EntityKey) -> Place? { firstPlace { $0.key == key } }

    /// The list above an item, and from it on: the first run below has no cursor of its own.
    func split(at place: Place) -> (above: [Run], below: [Run]) {
        let run = runs[place.run]
        return (
            runs[..<place.run] + [run.prefix(place.item)], [run.suffix(from: place.item)] + runs[(place.run + 1)...]
        )
    }

    /// Removes repeated items, and runs without items: what follows such a run begins where it began.
    mutating func normalize() {
        var known = Set<EntityKey>()
        var cursors = Set<String>()
        var result: [Run] = []
        for var run in runs {
            run.items.removeAll { !known.insert($0.key).inserted }
            if run.start?.gap == nil, let cursor = run.start?.cursor, !cursors.insert(cursor).inserted {
                // The same cursor at another place is outdated.
                run.forgetCursor()
            }
            if let last = result.last, last.items.isEmpty, last.start != nil {
                run.begin(like: last)
                result.removeLast()
            }
            result.append(run)
        }
        while result.count > 1, let last = result.last, last.items.isEmpty, let start = last.start {
            result.removeLast()
            if start.gap != nil || tail == .unknown { tail = Tail(cursor: start.cursor) }
        }
        runs = result
    }
}

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
    enum Start: Sendable, Hashable {
        /// No item is missing above. The cursor is that of the run.
        case joined(String)
        /// Items are missing above. The number identifies the gap for as long as it exists; the cursor is that of the first missing page.
        case gap(Int, cursor: String)
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

        /// Adds the items of the run behind it. Both are as old as the older one, and an answer that began before one of them changes neither.
        mutating func join(_ other: Run) {
            items += other.items
            facts.times = facts.times.mixed(with: other.facts.times)
            facts.confirmation = nil
            facts.asked = max(facts.asked, other.facts.asked)
        }
    }

    /// What follows the last item.
    enum Tail: Sendable, Hashable {
        /// Not known yet.
        case unknown
        case cursor(String)
        case end
    }

    /// The part of a list that is stored beside the members of the index. Its size does not depend on their number.
    struct Details: Sendable, Hashable {
        var tail = Tail.unknown
        var lastGap = 0
        /// The stamp of the latest page of a feed that the newest run came with; `never`: it came with a request.
        fileprivate var fed = Stamp.never

        /// What follows the last item, the number of the last gap, the stamp, and the cursor.
        var encoded: [UInt8] {
            var bytes: [UInt8] = [tail == .unknown ? 0 : tail == .end ? 1 : 2]
            bytes.append(number: Int64(lastGap))
            bytes.append(number: fed.rawValue)
            return bytes + Array((tail.cursor ?? "").utf8)
        }

        init(tail: Tail = .unknown) { self.tail = tail }

        /// Decodes stored bytes. A new index has none.
        init(_ bytes: [UInt8]) throws(LarderError) {
            var rest = bytes[...]
            guard let kind = rest.popFirst() else { return }
            guard let lastGap = rest.takeNumber(Int64.self), let fed = rest.takeNumber(Int64.self) else {
                throw LarderError(.storage, "A stored list has no cursors.")
            }
            (self.lastGap, self.fed) = (Int(lastGap), Stamp(rawValue: fed))
            tail = kind == 0 ? .unknown : kind == 1 ? .end : .cursor(String(decoding: rest, as: UTF8.self))
        }
    }

    /// The cursor of a gap whose newer end is the beginning of the list: the newest page fills it.
    static let newestCursor = ""

    /// In order, the newest first. There is always one, which has no items if the list begins with a gap.
    var runs: [Run]
    /// The part that is stored beside the members.
    private(set) var details: Details

    var tail: Tail {
        get { details.tail }
        set { details.tail = newValue }
    }

    /// Creates a list from the members of its index.
    ///
    /// - Parameters:
    ///   - keys: the members with pending changes applied; nil: all members.
    ///   - head: the times of the newest run.
    ///   - asked: the stamp of the latest request for the newest run.
    init(
        _ members: ListMembers = ListMembers(),
        _ details: Details = Details(),
        showing keys: [EntityKey]? = nil,
        head: Freshness.Times = .none,
        asked: Stamp = .never
    ) {
        self.details = details
        runs = [Run(facts: PageFacts(head, asked: max(asked, details.fed)))]
        var members = members
        if let keys { members.setKeys(keys) }
        for entry in members.entries { append(entry) }
        normalize()
    }

    private mutating func append(_ entry: ListMembers.Entry) {
        guard let start = Start(entry.key) else {
            return runs[runs.count - 1].items.append(Item(entry.key, entry.mark.map { Insertion(mark: $0) }))
        }
        let facts = entry.note.flatMap { PageFacts(decoding: $0) }
        runs.append(Run(start: start, facts: facts ?? PageFacts(.none)))
    }

    /// The members of the index, with the facts about items and runs as marks and notes.
    var members: [ListMembers.Entry] {
        runs.flatMap { run in
            (run.start.map { [ListMembers.Entry($0.key, note: run.facts.encoded)] } ?? [])
                + run.items.map { ListMembers.Entry($0.key, mark: $0.insertion?.mark) }
        }
    }

    /// Notes that the newest run came with a page of a feed.
    mutating func noteFed(_ stamp: Stamp) {
        details.fed = stamp
        runs[0].facts.asked = max(runs[0].facts.asked, stamp)
    }

    mutating func newGap(_ cursor: String) -> Start {
        details.lastGap += 1
        return .gap(details.lastGap, cursor: cursor)
    }

    // MARK: Looking

    var items: [EntityKey] { runs.flatMap { $0.items.map(\.key) } }

    var hasGap: Bool { runs.contains { $0.start?.gap != nil } }

    func index(ofGap number: Int) -> Int? { runs.firstIndex { $0.start?.gap == number } }

    func index(ofPage cursor: String) -> Int? { runs.firstIndex { $0.start == .joined(cursor) } }

    /// Whether a run begins with this cursor, and the server may know it.
    func knows(_ cursor: String) -> Bool { index(ofPage: cursor).map { !runs[$0].facts.isCursorGone } ?? false }

    /// The cursor of the page to request for a place.
    func cursor(of place: TimelinePlace) -> String? {
        switch place {
        case .tail: tail.cursor
        case .gap(let number): index(ofGap: number).flatMap { runs[$0].start?.cursor }
        case .page(let cursor): cursor.flatMap { knows($0) ? $0 : nil }
        case .newer(let number): index(ofGap: number).flatMap { runs[$0].facts.newerCursor }
        case .around: nil
        }
    }

    /// The runs down to a place, which is not among them.
    private func runs(above place: TimelinePlace) -> ArraySlice<Run> {
        let end: Int? =
            switch place {
            case .tail: runs.endIndex
            case .gap(let number), .newer(let number): index(ofGap: number)
            case .page(let cursor): cursor.flatMap { index(ofPage: $0) }
            case .around: nil
            }
        return runs[..<(end ?? 0)]
    }

    /// The cursors of the runs above a place up to a gap, the nearest first.
    func cursors(above place: TimelinePlace) -> [String] {
        runs(above: place).reversed().prefix { $0.start?.gap == nil }.compactMap { run in
            guard case .joined(let cursor) = run.start, !run.facts.isCursorGone else { return nil }
            return cursor
        }
    }

    /// The number of the nearest gap above a place.
    func gap(above place: TimelinePlace) -> Int? { runs(above: place).lazy.compactMap { $0.start?.gap }.last }

    /// Drops what is between a gap or the tail and the nearest gap above it, so that it continues where that gap begins: no cursor leads there
    /// any more. Those items can be loaded again; what no page has confirmed stays.
    mutating func widenGap(above place: TimelinePlace) {
        let above = runs(above: place)
        guard let first = above.lastIndex(where: { $0.start?.gap != nil }), let start = above[first].start else {
            return
        }
        let kept = above[first...].flatMap { $0.items.filter { !$0.isPlaced } }
        if above.endIndex == runs.endIndex {
            tail = Tail(cursor: start.cursor)
        } else if let number = runs[above.endIndex].start?.gap {
            runs[above.endIndex].start = .gap(number, cursor: start.cursor)
        }
        runs.removeSubrange(first..<above.endIndex)
        runs[first - 1].items += kept
        normalize()
    }
}

extension RunList.Start {
    private static let gapType = "==gap"
    private static let joinedType = "==page"

    /// Decodes a member of the index; nil if it is an item.
    init?(_ key: EntityKey) {
        if key.type == Self.joinedType {
            self = .joined(key.id)
            return
        }
        guard key.type == Self.gapType else { return nil }
        let parts = key.id.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let number = Int(parts[0]) else { return nil }
        self = .gap(number, cursor: String(parts[1]))
    }

    var key: EntityKey {
        switch self {
        case .joined(let cursor): EntityKey(type: Self.joinedType, id: cursor)
        case .gap(let number, let cursor): EntityKey(type: Self.gapType, id: "\(number) \(cursor)")
        }
    }

    var cursor: String {
        switch self {
        case .joined(let cursor), .gap(_, let cursor): cursor
        }
    }

    /// The number of the gap; nil if no item is missing.
    var gap: Int? {
        guard case .gap(let number, _) = self else { return nil }
        return number
    }
}

extension RunList.Tail {
    /// The tail at a cursor. That of the newest page says nothing.
    init(cursor: String) { self = cursor == RunList.newestCursor ? .unknown : .cursor(cursor) }

    var cursor: String? {
        guard case .cursor(let cursor) = self else { return nil }
        return cursor
    }
}

extension DiskQuery {
    func runs() throws -> RunList {
        var head = Freshness.Times.none
        // Otherwise the times of the newest page are not meaningful.
        if !isInvalidated, !times.isClockUncertain {
            head = Freshness.Times(times)
            head.asked = asked
        }
        return RunList(members, try RunList.Details(details), head: head, asked: asked)
    }

    /// Changes the runs of the list, and returns the new ones.
    @discardableResult
    mutating func editRuns(_ change: (inout RunList) -> Void) throws -> RunList {
        var list = try runs()
        change(&list)
        members.replace(with: list.members)
        isComplete = list.tail == .end && !list.hasGap
        details = list.details.encoded
        return list
    }
}

/// The age of runs, and the size of a list.
extension RunList {
    /// The validator for a request for a page that has not changed since it was fetched, with the number of items to ask for.
    func confirmation(_ cursor: String) -> PageFacts.Confirmation? {
        guard let run = index(ofPage: cursor).map({ runs[$0] }), let known = run.facts.confirmation,
            known.digest == PageFacts.digest(run.items.lazy.map(\.key))
        else { return nil }
        return known
    }

    /// Renews the times of a page that the source has confirmed, unless it has changed meanwhile or a later request has confirmed it.
    ///
    /// - Parameters:
    ///   - stated: what the source has said about the freshness: a lifetime that it has not stated continues.
    ///   - time: when the request began, less the stated `Age`.
    mutating func confirm(
        _ cursor: String,
        _ confirmation: PageFacts.Confirmation,
        _ stated: StatedFreshness?,
        at time: WallTime,
        asked: Stamp
    ) {
        guard self.confirmation(cursor) == confirmation, let index = index(ofPage: cursor) else { return }
        let known = runs[index].facts.times
        guard known.asked <= asked else { return }
        runs[index].facts.times = Freshness.Times(known.stated.updated(by: stated), at: time, asked: asked)
        runs[index].facts.times.fetchedAt = known.fetchedAt
        runs[index].facts.asked = max(runs[index].facts.asked, asked)
    }

    /// Notes that the server no longer knows a cursor. The run stays apart, because it has an age of its own.
    mutating func forget(_ cursor: String) {
        guard let index = index(ofPage: cursor) else { return }
        runs[index].facts.isCursorGone = true
        runs[index].facts.confirmation = nil
    }

    /// Counts all runs as never confirmed.
    mutating func invalidatePages() {
        for index in runs.indices {
            runs[index].facts.times = .none
            runs[index].facts.confirmation = nil
        }
    }

    /// Drops the oldest runs, so that at most `maximum` items stay. Those can be loaded again.
    mutating func keep(atMost maximum: Int) {
        var (total, end) = (0, 0)
        for run in runs {
            guard total + run.items.count <= maximum else { break }
            (total, end) = (total + run.items.count, end + 1)
        }
        guard end < runs.count else { return }
        if total > 0, let start = runs[end].start {
            tail = Tail(cursor: start.cursor)
        } else {
            // One run alone exceeds the maximum.
            runs[end].items.removeSubrange(maximum...)
            tail = .unknown
            end += 1
        }
        runs.removeSubrange(end...)
        normalize()
    }
}

/// The place in a timeline that a page is requested for.
enum TimelinePlace: Sendable, Hashable {
    /// After the last item.
    case tail
    case gap(Int)
    /// A page that was loaded before, by its cursor; nil: the newest page.
    case page(String?)
    /// At the older end of a gap.
    case newer(Int)
    /// Around an item, by its identifier.
    case around(String)
}

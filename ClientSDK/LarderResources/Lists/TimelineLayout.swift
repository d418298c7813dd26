import Foundation
import LarderStorage

/// The layout of a timeline in its query index: items in order, page boundaries, and gaps.
///
/// A value without I/O. Boundaries and gaps are keys in the index among the keys of the items, so that code that
/// removes an item from the index (an event or an edit) moves nothing else.
struct TimelineLayout: Sendable, Equatable {
    enum Element: Sendable, Hashable {
        case item(EntityKey)
        /// The cursor of the page that follows. No item is missing here.
        case boundary(String)
        /// The cursor of the first missing page. The number identifies the gap for as long as it exists.
        case gap(Int, cursor: String)
    }

    /// What follows the last element.
    enum Tail: Sendable, Hashable, Codable {
        /// Not known yet.
        case unknown
        case cursor(String)
        case end
    }

    /// An item that was inserted here and that no page has confirmed. Its neighbours may be others on the server.
    struct Loose: Sendable, Hashable {
        /// The time of the insertion in nanoseconds since 1970, without the lowest bit.
        var insertedAt: Int64
        /// Whether it was created on this device.
        var isOwn: Bool

        init(insertedAt: Int64, isOwn: Bool) {
            self.insertedAt = insertedAt & ~1
            self.isOwn = isOwn
        }

        /// Decodes the mark of a member: the time, and in the lowest bit whether it is own.
        init(mark: Int64) { self.init(insertedAt: mark, isOwn: mark & 1 != 0) }

        var mark: Int64 { insertedAt | (isOwn ? 1 : 0) }
    }

    /// The part of a layout that is stored beside the members of the index. Its size does not depend on their number.
    struct Details: Sendable, Hashable, Codable {
        var tail = Tail.unknown
        var lastGap = 0

        var encoded: [UInt8] {
            get throws {
                let encoder = JSONEncoder()
                encoder.outputFormatting = .sortedKeys
                return Array(try encoder.encode(self))
            }
        }

        init(tail: Tail = .unknown) { self.tail = tail }

        /// Decodes stored bytes. A new index has none.
        init(_ bytes: [UInt8]) throws {
            self = bytes.isEmpty ? Details() : try JSONDecoder().decode(Details.self, from: Data(bytes))
        }
    }

    private static let gapType = "==gap"
    private static let boundaryType = "==page"

    var elements: [Element] = []
    var tail = Tail.unknown
    var loose: [EntityKey: Loose] = [:]
    var lastGap = 0
    /// The facts about the pages that begin with a boundary or a gap.
    var pages: [PageStart: PageFacts] = [:]

    init() {}

    /// Creates a layout from its stored parts.
    init(_ members: ListMembers, _ details: Details) {
        for entry in members.entries {
            let element = Self.element(entry.key)
            elements.append(element)
            if let mark = entry.mark { loose[entry.key] = Loose(mark: mark) }
            if let start = element.start, let note = entry.note { pages[start] = PageFacts(decoding: note) }
        }
        tail = details.tail
        lastGap = details.lastGap
        normalize()
    }

    /// Creates a layout to be shown.
    ///
    /// - Parameters:
    ///   - keys: the members of the index with pending changes applied.
    ///   - members: the members of the index.
    init(showing keys: [EntityKey], _ members: ListMembers, _ details: Details) {
        elements = keys.map(Self.element)
        loose = members.marks.mapValues { Loose(mark: $0) }
        for (key, note) in members.notes {
            if let start = Self.element(key).start { pages[start] = PageFacts(decoding: note) }
        }
        tail = details.tail
        lastGap = details.lastGap
        normalize()
    }

    /// The members of the index, with the facts about items and pages as marks and notes.
    var members: [ListMembers.Entry] {
        elements.map { element in
            switch element {
            case .item(let key): ListMembers.Entry(key, mark: loose[key]?.mark)
            case .boundary, .gap:
                ListMembers.Entry(Self.key(element), note: element.start.flatMap { pages[$0]?.encoded })
            }
        }
    }

    /// The part that is stored beside the members.
    var details: Details {
        var details = Details(tail: tail)
        details.lastGap = lastGap
        return details
    }

    static func element(_ key: EntityKey) -> Element {
        switch key.type {
        case boundaryType: return .boundary(key.id)
        case gapType:
            let parts = key.id.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let number = Int(parts[0]) else { return .item(key) }
            return .gap(number, cursor: String(parts[1]))
        default: return .item(key)
        }
    }

    private static func key(_ element: Element) -> EntityKey {
        switch element {
        case .item(let key): key
        case .boundary(let cursor): EntityKey(type: boundaryType, id: cursor)
        case .gap(let number, let cursor): EntityKey(type: gapType, id: "\(number) \(cursor)")
        }
    }

    // MARK: Looking

    var items: [EntityKey] { elements.compactMap(\.item) }

    /// Whether an item of the newest page was inserted here and no page has confirmed it.
    var beginsLoose: Bool {
        elements.lazy.prefix { $0.start == nil }.contains { $0.item.map { loose[$0] != nil } ?? false }
    }

    func index(ofGap number: Int) -> Int? {
        elements.firstIndex { element in
            guard case .gap(number, _) = element else { return false }
            return true
        }
    }

    /// The cursors of the pages that begin above a place, the nearest first.
    func boundaries(above place: TimelinePlace) -> [String] {
        let end: Int =
            switch place {
            case .tail: elements.endIndex
            case .gap(let number): index(ofGap: number) ?? 0
            case .page(let cursor): cursor.flatMap { elements.firstIndex(of: .boundary($0)) } ?? 0
            case .renewal(let cursor): elements.firstIndex(of: .boundary(cursor)) ?? 0
            case .newer(let number): index(ofGap: number) ?? 0
            case .around: 0
            }
        return elements[..<end].reversed().compactMap { element in
            guard case .boundary(let cursor) = element, knows(cursor) else { return nil }
            return cursor
        }
    }

    // MARK: Order

    /// Removes redundant elements: repeated items, gaps and boundaries that are adjacent, and gaps and boundaries at
    /// the end.
    mutating func normalize() {
        var known = Set<EntityKey>()
        var result: [Element] = []
        result.reserveCapacity(elements.count)
        for element in elements {
            switch (element, result.last) {
            case (.item(let key), _): if known.insert(key).inserted { result.append(element) }
            // All items between the two are gone. Filling the first gap reaches the items behind the second.
            case (.gap, .gap?), (.boundary, .gap?), (.boundary, .boundary?): inherit(result.last, element)
            case (.gap(_, let cursor), .boundary(let other)) where cursor == other:
                result[result.count - 1] = element
            case (.gap, _), (.boundary, _): result.append(element)
            }
        }
        while let last = result.last, last.item == nil {
            if case .gap(_, let cursor) = last {
                tail = cursor == Self.newestCursor ? .unknown : .cursor(cursor)
            } else if case .boundary(let cursor) = last, tail != .cursor(cursor) {
                break
            }
            result.removeLast()
        }
        elements = result
        guard !loose.isEmpty || !pages.isEmpty else { return }
        loose = loose.filter { known.contains($0.key) }
        let starts = Set(elements.compactMap(\.start))
        pages = pages.filter { starts.contains($0.key) }
    }

    /// Begins the page of `second` with `first`, because the page of `first` has no items left.
    private mutating func inherit(_ first: Element?, _ second: Element) {
        guard let first = first?.start, let second = second.start else { return }
        var facts = pages[first] ?? PageFacts(.never)
        facts.times = pages[second]?.times ?? .never
        if case .gap = second { facts.newerCursor = pages[second]?.newerCursor }
        // A validator belongs to a cursor.
        facts.confirmation = nil
        pages[first] = facts
    }

    /// Drops the oldest items, so that at most `maximum` stay. It cuts at the end of a page, from where the rest can be
    /// loaded again.
    mutating func keep(atMost maximum: Int) {
        var count = 0
        var end: (index: Int, tail: Tail) = (0, .unknown)
        for (index, element) in elements.enumerated() {
            switch element {
            case .item: count += 1
            case .boundary(let cursor), .gap(_, let cursor): if count <= maximum { end = (index, .cursor(cursor)) }
            }
        }
        guard count > maximum else { return }
        if end.index == 0 {
            // The newest page and the inserted items alone exceed the maximum.
            end = (min(maximum, elements.count), .unknown)
        }
        elements.removeSubrange(end.index...)
        tail = end.tail
        normalize()
    }
}

extension TimelineLayout.Element {
    var item: EntityKey? {
        guard case .item(let key) = self else { return nil }
        return key
    }

    var isGap: Bool { gapCursor != nil }

    /// The cursor of the first missing page; nil for an item or a boundary.
    var gapCursor: String? {
        guard case .gap(_, let cursor) = self else { return nil }
        return cursor
    }

    /// The cursor at which a page begins, loaded or missing; nil for an item.
    var startCursor: String? {
        switch self {
        case .item: nil
        case .boundary(let cursor), .gap(_, let cursor): cursor
        }
    }
}

/// The place in a timeline that a page is requested for.
enum TimelinePlace: Sendable, Hashable {
    /// After the last item.
    case tail
    case gap(Int)
    /// A page that was loaded before and lacks items, by its cursor; nil: the newest page.
    case page(String?)
    /// A page that was loaded before and is fetched again to confirm it, by its cursor.
    case renewal(String)
    /// At the older end of a gap.
    case newer(Int)
    /// Around an item, by its identifier.
    case around(String)
}

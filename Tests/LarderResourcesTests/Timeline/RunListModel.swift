import LarderStorage
import LarderTime
import SDKTestSupport
import TestSupport

@testable import LarderResources

/// The reference of the tests of run lists: the server's list is an array, newest first; a page is a part of it.
struct RunListModel {
    private enum Request {
        case newest
        case older(TimelinePlace, cursor: String)
        case newer(gap: Int, cursor: String)
        case around
    }

    /// A reply to a request, which has not arrived.
    private struct Reply {
        var request: Request
        var page: IncomingPage
        /// What it confirms, if the page has not changed.
        var confirmed: PageFacts.Confirmation?
        /// The process that waits for it.
        var process: Int
    }

    /// All items that were ever written. A cursor is the item next to which a page begins, also after its deletion.
    private var written: [String] = []
    var server: [String] { written.filter { !deleted.contains($0) } }
    var list = RunList()
    /// Items of the list whose places the server has not stated.
    private var loose: Set<String> { Set(list.runs.flatMap { $0.items.filter { !$0.isPlaced }.map(\.key.id) }) }
    private var deleted: Set<String> = []
    /// The items that the feed has not brought, newest first.
    private var unseen: [String] = []
    /// When the latest request began whose reply has shown or confirmed an item.
    private var served: [String: WallTime] = [:]
    private var generator: SeededGenerator
    private var now: Int64 = 1_000
    private var stamp = Stamp.never
    private var replies: [Reply] = []
    /// The process that has the list in memory. The other one reads it from the disk.
    private var process = 0
    private let limit: Int
    /// Whether the feed brings the items, and not events.
    private let hasFeed: Bool
    /// Whether the list is opened at items.
    private let opensAtItems: Bool
    private let statesNewer: Bool
    private let keptMaximum: Int

    init(_ seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        limit = 2 + Int(seed % 4)
        hasFeed = seed % 2 == 0
        opensAtItems = seed % 3 != 0
        statesNewer = seed % 5 != 0
        // A feed does not know which items were dropped.
        keptMaximum = seed % 7 == 0 && !hasFeed ? 12 : 1_000
        for _ in 0..<generator.uniform(in: 0..<12) { write() }
        unseen = []
    }

    private var time: WallTime { WallTime(nanosecondsSinceEpoch: now * 1_000_000_000) }

    private mutating func write() {
        // The identifiers are not in the order of the list.
        let id = "\((written.count + 1) * 7_919 % 10_007)"
        written.insert(id, at: 0)
        unseen.insert(id, at: 0)
    }

    // MARK: Requests

    private mutating func ask(_ request: Request) {
        let server = server
        func remaining(behind cursor: String) -> [String] {
            written.firstIndex(of: cursor).map { written[($0 + 1)...].filter { !deleted.contains($0) } } ?? []
        }
        var ids: [String]
        switch request {
        case .newest: ids = Array(server.prefix(limit))
        case .older(_, let cursor): ids = Array(remaining(behind: cursor).prefix(limit))
        case .newer(_, let cursor):
            let index = written.firstIndex(of: cursor) ?? 0
            ids = Array(written[..<index].filter { !deleted.contains($0) }.suffix(limit))
        case .around:
            guard !server.isEmpty else { return }
            let first = max(0, generator.uniform(in: 0..<server.count) - limit / 2)
            ids = Array(server[first...].prefix(limit))
        }
        let older = ids.last.flatMap { remaining(behind: $0).isEmpty ? nil : $0 }
        stamp = stamp.successor
        var page = IncomingPage(
            keys: ids.map { Note.key($0) },
            cursor: older,
            limit: limit,
            times: Freshness.Times(fetchedAt: time, validatedAt: time, expiresAt: time, asked: stamp),
            receivedAt: time
        )
        if statesNewer, let first = ids.first, first != server.first { page.newerCursor = first }
        var confirmed: PageFacts.Confirmation?
        if case .older(let place, let cursor) = request {
            page.validator = "\(ids) \(older ?? "")"
            if case .page = place, let known = list.confirmation(cursor), known.validator == page.validator {
                confirmed = known
            }
        }
        replies.append(
            Reply(request: request, page: page, confirmed: confirmed, process: generator.uniform(in: 0..<2))
        )
    }

    private mutating func arrive(_ index: Int) {
        let reply = replies.remove(at: index)
        if reply.process != process {
            process = reply.process
            readAgain()
        }
        var page = reply.page
        for key in page.keys { served[key.id] = max(page.startedAt, served[key.id] ?? page.startedAt) }
        let count = page.keys.count
        page.keys.removeAll { deleted.contains($0.id) }
        // As for a reply with items that are known to be deleted.
        if page.keys.count < count { page.validator = nil }
        page.receivedAt = time
        switch reply.request {
        case .newest: list.takeNewest(page)
        case .older(let place, let cursor):
            if let confirmed = reply.confirmed {
                list.confirm(cursor, confirmed, nil, at: page.startedAt, asked: page.times.asked)
            } else {
                list.take(page, at: place, cursor: cursor)
            }
        case .newer(let gap, let cursor): list.takeNewer(page, inGap: gap, cursor: cursor)
        case .around:
            let places = Dictionary(uniqueKeysWithValues: written.enumerated().map { ($1, $0) })
            list.takeAround(page, { places[$0, default: 0] < places[$1, default: 0] }, keptMaximum: keptMaximum)
        }
    }

    /// The request for a place: that of its cursor, or if that is not known, of what leads to it.
    private func request(for place: TimelinePlace) -> Request {
        if case .newer(let gap) = place, let cursor = list.cursor(of: place) { return .newer(gap: gap, cursor: cursor) }
        if case .newer(let gap) = place { return request(for: .gap(gap)) }
        if let cursor = list.cursor(of: place) { return .older(place, cursor: cursor) }
        if let above = list.cursors(above: place).first { return .older(.page(above), cursor: above) }
        return list.gap(above: place).map { request(for: .gap($0)) } ?? .newest
    }

    /// The gaps and the tail.
    private var openPlaces: [TimelinePlace] {
        list.runs.compactMap { $0.start?.gap.map { .gap($0) } } + (list.tail.cursor == nil ? [] : [.tail])
    }

    private mutating func any<Element>(_ elements: [Element]) -> Element? {
        elements.isEmpty ? nil : elements[generator.uniform(in: 0..<elements.count)]
    }

    // MARK: Changes

    /// Reads the list from its stored form.
    private mutating func readAgain() {
        read(ListMembers(entries: list.members))
    }

    private mutating func read(_ members: ListMembers) {
        let head = list.runs[0].facts
        list = RunList(members, list.details, head: head.times, asked: head.asked)
    }

    private mutating func remove(_ id: String) {
        deleted.insert(id)
        unseen.removeAll { $0 == id }
        for index in list.runs.indices { list.runs[index].items.removeAll { $0.key.id == id } }
        list.normalize()
    }

    /// Inserts an item as an event does: the newest one of others, or an own one.
    private mutating func insert(_ id: String, isOwn: Bool) {
        var members = ListMembers(entries: list.members)
        NewestItem(key: Note.key(id), isOwn: isOwn).insert(into: &members, at: time, isEnd: false)
        read(members)
    }

    /// Brings what the feed has not brought: all of it, or the newest part with a gap before it.
    private mutating func sync() {
        guard !unseen.isEmpty else { return }
        let part = generator.uniform(in: 0..<3) == 0 ? Array(unseen.prefix(limit)) : unseen
        let isLimited = part.count < unseen.count
        stamp = stamp.successor
        list.takeFeedPage(
            part.map { Note.key($0) },
            cursor: part.last == server.last ? nil : part.last,
            hasGap: isLimited,
            at: time,
            stamp
        )
        unseen = []
    }

    /// A cursor, or what is above a gap, is not known to the server any more.
    private mutating func loseCursor() -> String {
        let cursors = list.runs.compactMap { $0.start?.gap == nil ? $0.start?.cursor : nil }
        if hasFeed || generator.uniform(in: 0..<3) > 0 {
            guard let cursor = any(cursors) else { return "" }
            list.forget(cursor)
            return "forget \(cursor)"
        }
        guard let place = any(openPlaces) else { return "" }
        list.widenGap(above: place)
        return "widen above \(place)"
    }

    mutating func step() -> String {
        now += Int64(generator.uniform(in: 1..<5))
        switch generator.uniform(in: 0..<18) {
        case 0, 1:
            for _ in 0..<generator.uniform(in: 1..<6) { write() }
            return "write"
        case 2:
            guard let id = any(server) else { return "" }
            remove(id)
            return "remove \(id)"
        case 3, 4:
            ask(.newest)
            return "ask for the newest page"
        case 5, 6:
            let pages = list.runs.compactMap { $0.start?.gap == nil ? $0.start?.cursor : nil }
            guard let place = any(openPlaces + pages.map { .page($0) }) else { return "" }
            ask(request(for: place))
            return "ask for \(place)"
        case 7, 8, 9, 10:
            guard !replies.isEmpty else { return "" }
            let index = generator.uniform(in: 0..<replies.count)
            let text = "\(replies[index])"
            arrive(index)
            return text
        case 11, 12:
            if hasFeed {
                sync()
                return "sync"
            }
            guard let id = unseen.popLast() else { return "" }
            insert(id, isOwn: false)
            return "event \(id)"
        case 13:
            write()
            // The feed brings it again.
            insert(server[0], isOwn: true)
            return "own \(server[0])"
        case 14, 15:
            guard opensAtItems else { return "" }
            if generator.uniform(in: 0..<2) == 0, let gap = any(list.runs.compactMap { $0.start?.gap }) {
                ask(request(for: .newer(gap)))
                return "ask for newer items in \(gap)"
            }
            ask(.around)
            return "ask for a page around an item"
        case 16: return loseCursor()
        default:
            readAgain()
            return "restart"
        }
    }

    // MARK: Judging

    var line: String {
        list.runs.map { run in
            let start = run.start.map { ($0.gap.map { "|\($0) " } ?? "+") + ($0.cursor ?? "?") } ?? ""
            let items = run.items.map { $0.key.id + ($0.isPlaced ? "" : "~") }
            return "\(start) \(items)"
        }.joined(separator: " ") + " \(list.tail)"
    }

    /// What contradicts the server's list: order, items that are missing within a run, and ages.
    var problem: String? {
        var previous: Int?
        var isBehindGap = false
        let loose = loose
        let server = server
        for run in list.runs {
            if run.start?.gap != nil { isBehindGap = true }
            for item in run.items where item.isPlaced {
                let id = item.key.id
                if item.insertion == nil, served[id].map({ $0 < run.facts.times.validatedAt }) ?? true {
                    return "\(id) counts as confirmed at \(run.facts.times.validatedAt): \(line)"
                }
                guard let index = server.firstIndex(of: id) else { return "\(id) is deleted: \(line)" }
                defer { (previous, isBehindGap) = (index, false) }
                guard let previous else { continue }
                if index <= previous { return "\(id) is at a wrong place: \(line), \(server)" }
                if isBehindGap { continue }
                let missing = server[(previous + 1)..<index].filter { !loose.contains($0) }
                if !missing.isEmpty { return "\(missing) is missing: \(line), \(server)" }
            }
        }
        if list.tail == .end, !isBehindGap, let previous,
            server[(previous + 1)...].contains(where: { !loose.contains($0) })
        {
            return "the end is missing: \(line), \(server)"
        }
        let items = list.items
        return Set(items).count == items.count ? nil : "repeated: \(line)"
    }

    /// Delivers everything, and reads to the end. Returns what contradicts the server's list meanwhile.
    mutating func finish() -> String? {
        if hasFeed { sync() }
        while !replies.isEmpty {
            let text = "\(replies[0]) \(line)"
            arrive(0)
            if let problem { return "\(text): \(problem)" }
        }
        now += 100
        let before = line
        ask(.newest)
        arrive(0)
        if let problem { return "newest \(before): \(problem)" }
        for _ in 0..<200 {
            guard let place = any(openPlaces) else { break }
            let before = line
            ask(request(for: place))
            arrive(0)
            if let problem { return "\(place) \(before): \(problem)" }
        }
        return nil
    }
}

import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

/// Random histories of pages, pages of a change feed, events, own items, edits, deletions and restarts, by two processes that share the
/// list, compared with the server's list. The order is that of an array and not of the identifiers.
@Suite("Run lists: random histories against a model")
struct RunListTests {
    @Test(arguments: seeds(50))
    func `every run is a run of the server's list, and finally the whole list is there`(_ seed: UInt64) {
        var model = Model(seed)
        for step in 0..<80 {
            let before = model.line
            let action = model.step()
            #expect(
                model.problem == nil,
                "seed \(seed), step \(step), \(action): \(model.problem ?? "") Before: \(before)"
            )
            if model.problem != nil { return }
        }
        #expect(model.finish() == nil, "seed \(seed)")
        #expect(model.list.items.map(\.id) == model.server, "seed \(seed): \(model.line)")
        #expect(model.list.tail == .end, "seed \(seed): \(model.line)")
    }

    private func at(_ stamp: Int64) -> WallTime { WallTime(nanosecondsSinceEpoch: stamp * 1_000) }
    private func keys(_ ids: [String]) -> [EntityKey] { ids.map { Note.key($0) } }
    private let isNewer: (String, String) -> Bool = { (Int($0) ?? 0) > (Int($1) ?? 0) }

    private func page(_ ids: [String], _ cursor: String?, asked: Int64) -> IncomingPage {
        IncomingPage(
            keys: keys(ids),
            cursor: cursor,
            limit: 2,
            times: Freshness.Times(nil, at: at(asked), asked: Stamp(rawValue: asked)),
            receivedAt: WallTime(nanosecondsSinceEpoch: asked * 1_000 + 500)
        )
    }

    @Test func `what came after a late newest page, of which nothing is left, stays above its gap`() {
        var list = RunList()
        list.takeNewest(page(["2", "1"], "1", asked: 1))
        list.takeFeedPage(keys(["5", "2"]), cursor: "1", hasGap: false, at: at(3), Stamp(rawValue: 3))
        // The page was requested before the feed brought "5". Its items, "4" and "3", are deleted meanwhile; the cursor leads on behind "3".
        var late = page([], "3", asked: 2)
        late.receivedAt = at(3)
        list.takeNewest(late)
        #expect(list.runs[0].items.map(\.key) == keys(["5"]))
        #expect(list.runs.count == 2 && list.runs[1].items.map(\.key) == keys(["2", "1"]))
        #expect(list.runs.last?.start?.gap != nil && list.runs.last?.start?.cursor == "3")
    }

    @Test(arguments: [false, true])
    func `items of a feed are above the cursor of the page that they precede`(_ hasGap: Bool) {
        var list = RunList()
        list.takeNewest(page(["6", "5"], "5", asked: 1))
        list.take(page(["4", "3"], nil, asked: 2), at: .tail, cursor: "5")
        if hasGap { list.runs[1].start = list.newGap("5") }
        // The items of the newest page are deleted.
        list.runs[0].items = []
        list.takeFeedPage(keys(["8", "4"]), cursor: nil, hasGap: false, at: at(3), Stamp(rawValue: 3))
        #expect(list.runs.map { $0.items.map(\.key.id) } == [["8"], ["4", "3"]])
        #expect(!list.hasGap)
        list.take(page(["4", "3"], nil, asked: 4), at: .page("5"), cursor: "5")
        #expect(list.items.map(\.id) == ["8", "4", "3"])
    }

    @Test func `a gap at the beginning begins behind the newest page`() {
        var list = RunList()
        list.takeAround(page(["5", "4"], "4", asked: 1), isNewer, keptMaximum: 100)
        list.takeFeedPage(keys(["9", "8", "7"]), cursor: "7", hasGap: false, at: at(3), Stamp(rawValue: 3))
        #expect(list.runs.compactMap(\.start) == [.gap(1, cursor: "7")])
        list = RunList()
        list.takeAround(page(["5", "4"], "4", asked: 1), isNewer, keptMaximum: 100)
        list.takeFeedPage(keys(["9", "8", "7"]), cursor: nil, hasGap: false, at: at(3), Stamp(rawValue: 3))
        list.takeNewest(page(["9", "8"], "8", asked: 4))
        #expect(list.runs.last?.start == .gap(1, cursor: "8"))
        list.take(page(["7", "6"], "6", asked: 5), at: .gap(1), cursor: "8")
        list.take(page(["5", "4"], "4", asked: 6), at: .gap(1), cursor: "6")
        #expect(list.items == keys(["9", "8", "7", "6", "5", "4"]) && !list.hasGap)
    }

    @Test func `a late newest page joins the page around an item without a page of its own`() {
        var list = RunList()
        list.takeAround(page(["5", "4"], "4", asked: 2), isNewer, keptMaximum: 100)
        list.takeNewest(page(["6", "5"], "5", asked: 1))
        #expect(list.runs.count == 1 && list.items == keys(["6", "5", "4"]) && list.tail == .cursor("4"))
    }

    @Test func `a late page around an item brings no item back that a later page lacks`() {
        var list = RunList()
        list.takeNewest(page(["20", "19"], "19", asked: 2))
        list.takeAround(page(["21", "20", "19"], "19", asked: 1), isNewer, keptMaximum: 100)
        #expect(list.items == keys(["20", "19"]))
    }

    @Test func `a page around an item is behind a gap if the end of the list is not known`() {
        var list = RunList()
        list.takeFeedPage(keys(["9", "8"]), cursor: nil, hasGap: false, at: at(1), Stamp(rawValue: 1))
        list.takeAround(page(["4", "3"], "3", asked: 2), isNewer, keptMaximum: 100)
        #expect(list.hasGap)
        list.takeNewest(page(["9", "8"], "8", asked: 3))
        #expect(list.runs.compactMap(\.start) == [.gap(1, cursor: "8")])
    }

    @Test func `items of a feed in front of a gap without a cursor do not hide it`() {
        var list = RunList()
        list.takeNewest(page(["2", "1"], "1", asked: 1))
        list.takeFeedPage(keys(["9", "8"]), cursor: nil, hasGap: true, at: at(3), Stamp(rawValue: 3))
        list.takeNewest(page(["9", "8"], "8", asked: 4))
        #expect(list.runs.map(\.items.count) == [2, 2] && list.runs[1].start?.gap != nil)
    }

    @Test func `an item of a feed is above the cursor of a page that begins with an item without a place`() {
        var list = RunList()
        list.takeNewest(page(["6", "5"], "5", asked: 1))
        list.take(page(["4", "3"], nil, asked: 2), at: .tail, cursor: "5")
        list.runs[0].items = []
        list.runs[1].items.insert(RunList.Item(Note.key("x"), RunList.Insertion(insertedAt: 2_500)), at: 0)
        list.takeFeedPage(keys(["8", "4"]), cursor: nil, hasGap: false, at: at(3), Stamp(rawValue: 3))
        list.take(page(["4", "3"], nil, asked: 4), at: .page("5"), cursor: "5")
        #expect(list.items.contains(Note.key("8")))
    }

    @Test func `a confirmed page is not changed by an earlier newest page`() throws {
        var list = RunList()
        list.takeNewest(page(["6", "5"], "5", asked: 1))
        var older = page(["4", "3"], "3", asked: 2)
        older.validator = "v"
        list.take(older, at: .tail, cursor: "5")
        list.confirm("5", try #require(list.confirmation("5")), nil, at: at(4), asked: Stamp(rawValue: 4))
        list.takeNewest(page(["6", "3"], "3", asked: 3))
        #expect(list.items == keys(["6", "4", "3"]))
    }

    @Test func `a late reply that confirms an invalid list confirms no other page of it`() {
        var list = RunList()
        list.takeNewest(page(["4", "3"], "3", asked: 1))
        list.take(page(["2", "1"], "1", asked: 2), at: .tail, cursor: "3")
        list.noteFed(Stamp(rawValue: 4))
        var late = page(["4", "3"], "3", asked: 3)
        late.isOnlyConfirmed = true
        list.takeNewest(late)
        #expect(list.runs.count == 2 && list.runs[1].facts.times == Freshness.Times.none)
    }
}

/// The reference: the server's list is an array, newest first; a page is a part of it.
private struct Model {
    /// A page that was requested and has not arrived.
    private struct Reply {
        var page: IncomingPage
        var place: TimelinePlace?
        var cursor: String
        /// The process that waits for it.
        var process: Int
    }

    /// All items that were ever written. A cursor is the item after which a page begins, also after its deletion.
    private var written: [String] = []
    var server: [String] { written.filter { !deleted.contains($0) } }
    var list = RunList()
    /// Items of the list whose places the server has not stated.
    private var loose: Set<String> { Set(list.runs.flatMap { $0.items.filter { !$0.isPlaced }.map(\.key.id) }) }
    private var deleted: Set<String> = []
    /// The items that the feed has not brought, newest first.
    private var unseen: [String] = []
    private var generator: SeededGenerator
    private var now: Int64 = 1_000
    private var last = 0
    private var stamp = Stamp.never
    private var replies: [Reply] = []
    /// The process that has the list in memory. The other one reads it from the disk.
    private var process = 0
    private let limit: Int
    /// Whether the feed brings the items, and not events.
    private let hasFeed: Bool

    init(_ seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        limit = 2 + Int(seed % 4)
        hasFeed = seed % 2 == 0
        for _ in 0..<generator.uniform(in: 0..<12) { write() }
        unseen = []
    }

    private var time: WallTime { WallTime(nanosecondsSinceEpoch: now * 1_000_000_000) }

    private mutating func write() {
        last += 1
        // The identifiers are not in the order of the list.
        let id = "\(last * 7_919 % 10_007)"
        written.insert(id, at: 0)
        unseen.insert(id, at: 0)
    }

    private mutating func ask(_ place: TimelinePlace?, after cursor: String) {
        let first = cursor.isEmpty ? 0 : written.firstIndex(of: cursor).map { $0 + 1 }
        guard let first else { return }
        let rest = written[first...].filter { !deleted.contains($0) }
        let ids = rest.prefix(limit)
        stamp = stamp.successor
        let page = IncomingPage(
            keys: ids.map { Note.key($0) },
            cursor: ids.count < rest.count ? ids.last : nil,
            limit: limit,
            times: Freshness.Times(fetchedAt: time, validatedAt: time, expiresAt: time, asked: stamp),
            receivedAt: time
        )
        replies.append(Reply(page: page, place: place, cursor: cursor, process: generator.uniform(in: 0..<2)))
    }

    private mutating func arrive(_ index: Int) {
        var reply = replies.remove(at: index)
        if reply.process != process {
            process = reply.process
            readAgain()
        }
        reply.page.keys.removeAll { deleted.contains($0.id) }
        reply.page.receivedAt = time
        if let place = reply.place {
            list.take(reply.page, at: place, cursor: reply.cursor)
        } else {
            list.takeNewest(reply.page)
        }
    }

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

    /// A place whose cursor the server knows.
    private mutating func place(_ isWanted: (TimelinePlace) -> Bool = { _ in true }) -> (TimelinePlace, String)? {
        var places: [(TimelinePlace, String)] = list.tail.cursor.map { [(.tail, $0)] } ?? []
        for start in list.runs.compactMap(\.start) {
            places.append((start.gap.map { .gap($0) } ?? .page(start.cursor), start.cursor))
        }
        places.removeAll { !isWanted($0.0) }
        return places.isEmpty ? nil : places[generator.uniform(in: 0..<places.count)]
    }

    mutating func step() -> String {
        now += Int64(generator.uniform(in: 1..<5))
        switch generator.uniform(in: 0..<14) {
        case 0, 1:
            for _ in 0..<generator.uniform(in: 1..<6) { write() }
            return "write"
        case 2:
            guard !server.isEmpty else { return "" }
            let id = server[generator.uniform(in: 0..<server.count)]
            remove(id)
            return "remove \(id)"
        case 3, 4:
            ask(nil, after: "")
            return "ask for the newest page"
        case 5, 6:
            guard let (place, cursor) = place() else { return "" }
            ask(place, after: cursor)
            return "ask for \(place)"
        case 7, 8, 9:
            guard !replies.isEmpty else { return "" }
            let index = generator.uniform(in: 0..<replies.count)
            let text = "\(replies[index])"
            arrive(index)
            return text
        case 10, 11:
            if hasFeed {
                sync()
                return "sync"
            }
            guard let id = unseen.popLast() else { return "" }
            insert(id, isOwn: false)
            return "event \(id)"
        case 12:
            write()
            // The feed brings it again.
            insert(server[0], isOwn: true)
            return "own \(server[0])"
        default:
            readAgain()
            return "restart"
        }
    }

    var line: String {
        list.runs.map { "\($0.start.map { "\($0)" } ?? "") \($0.items.map(\.key.id))" }.joined(separator: " ")
            + " \(list.tail)"
    }

    /// What contradicts the server's list: order, and items that are missing within a run.
    var problem: String? {
        var previous: Int?
        var isBehindGap = false
        let loose = loose
        for run in list.runs {
            if run.start?.gap != nil { isBehindGap = true }
            for item in run.items where item.isPlaced {
                guard let index = server.firstIndex(of: item.key.id) else {
                    return "\(item.key.id) is deleted: \(line)"
                }
                defer { (previous, isBehindGap) = (index, false) }
                guard let previous else { continue }
                if index <= previous { return "\(item.key.id) is at a wrong place: \(line), \(server)" }
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
        ask(nil, after: "")
        arrive(0)
        if let problem { return "newest \(before): \(problem)" }
        for _ in 0..<200 {
            guard let (place, cursor) = place({ if case .page = $0 { false } else { true } }) else { break }
            let before = line
            ask(place, after: cursor)
            arrive(0)
            if let problem { return "\(place) \(before): \(problem)" }
        }
        return nil
    }
}

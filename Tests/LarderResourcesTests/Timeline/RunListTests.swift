import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

/// Random histories of pages, pages around items and of newer items, "not modified", unknown cursors, pages of a change feed, events, own items,
/// deletions and restarts, by two processes that share the list, compared with the server's list. The order is that of an array and not of
/// the identifiers.
@Suite("Run lists: random histories against a model")
struct RunListTests {
    @Test(arguments: seeds(50))
    func `every run is a run of the server's list, and finally the whole list is there`(_ seed: UInt64) {
        var model = RunListModel(seed)
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

    @Test func `a page above all items of a list that begins with a cursor is not behind that cursor`() {
        var list = RunList()
        list.takeNewest(page(["6", "5"], "5", asked: 1))
        list.take(page(["4", "3"], nil, asked: 2), at: .tail, cursor: "5")
        list.runs[1].start = list.newGap("5")
        list.runs[0].items = []
        list.takeAround(page(["9", "8"], "8", asked: 3), isNewer, keptMaximum: 100)
        #expect(list.runs.compactMap(\.start) == [.gap(1, cursor: nil), .gap(3, cursor: "8")])
    }

    @Test func `the starts of runs are stored as members, and facts of another form are ignored`() {
        for start: RunList.Start in [.joined("c"), .joined(nil), .gap(3, cursor: nil), .gap(3, cursor: "c d")] {
            #expect(RunList.Start(start.key(ofRun: 2)) == start)
        }
        var facts = PageFacts(Freshness.Times(nil, at: at(5), asked: Stamp(rawValue: 5)))
        facts.newerCursor = "n"
        #expect(PageFacts(decoding: facts.encoded) == facts)
        // The form with a mark for cursors that the server has forgotten.
        #expect(PageFacts(decoding: "[1,2,3,0,5,6,1,0,0,null,null]") == nil)
    }

    @Test func `an item that an event inserts during the first request stays although the page ends above it`() {
        var list = RunList()
        list.runs[0].items = ["9", "8"].map { RunList.Item(Note.key($0), RunList.Insertion(insertedAt: 2_000)) }
        var late = page(["9"], "9", asked: 1)
        late.receivedAt = at(3)
        list.takeNewest(late)
        #expect(list.items == keys(["9", "8"]) && list.tail == .cursor("9"))
        list.take(page(["8", "7"], nil, asked: 4), at: .tail, cursor: "9")
        #expect(list.items == keys(["9", "8", "7"]) && list.tail == .end)
    }

    @Test func `a page around an item within a run has gaps at both ends`() {
        var list = RunList()
        list.takeNewest(page(["9", "5"], "5", asked: 1))
        list.takeAround(page(["8", "7"], "7", asked: 2), isNewer, keptMaximum: 100)
        #expect(list.runs.map { $0.items.map(\.key.id) } == [["9"], ["8", "7"], ["5"]])
        #expect(list.runs.dropFirst().allSatisfy { $0.start?.gap != nil })
        // A page that reaches further up than the loaded item that it contains.
        list = RunList()
        list.takeNewest(page(["9", "5"], "5", asked: 1))
        list.takeAround(page(["6", "5"], "5", asked: 2), isNewer, keptMaximum: 100)
        #expect(list.runs.map { $0.items.map(\.key.id) } == [["9"], ["6", "5"]])
        #expect(list.runs[1].start?.gap != nil)
    }
}

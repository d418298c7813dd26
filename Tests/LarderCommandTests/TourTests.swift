import LarderArguments
import LarderCoding
import TestSupport
import Testing

@testable import LarderCommand

@Suite("Command: the tour", .oneMinute)
struct TourTests {
    @Test func `values are written with their units`() {
        let values: [TourValue] = [
            .duration(.nanoseconds(646)), .duration(.microseconds(12)), .duration(.zero), .bytes(2_048), .count(3),
            .none,
        ]
        #expect(values.map(\.text) == ["646 ns", "12 µs", "0", "2.0 KB", "3", "–"])
        #expect(
            values.map(\.json) == [.integer(646), .integer(12_000), .integer(0), .integer(2_048), .integer(3), .null]
        )
    }

    @Test func `text is wrapped between words`() {
        #expect(TourText.wrapped("one two three four", 9) == ["one two", "three", "four"])
        #expect(TourText.wrapped("", 9).isEmpty)
    }

    @Test func `the page shows every table, and text cannot become markup`() {
        var chapter = TourChapter(name: "name", title: "A \"title\"", question: "?", answer: "<script>")
        chapter.exhibits = [
            .table(TourTable(title: "table", columns: ["column"], rows: [[.text("<td>")], [.count(7)]]))
        ]
        let page = TourPage(chapters: [chapter], conditions: "here & now").html
        #expect(page.contains("<h2>A &quot;title&quot;</h2>") && page.contains("here &amp; now"))
        #expect(page.contains("&lt;td&gt;") && page.contains("<td class=\"number\" data-label=\"column\">7</td>"))
        #expect(page.contains("&lt;script&gt;") && page.ranges(of: "<script>").count == 1)
        // Where there is no room for the columns of a table, rows are blocks; no part of the page is scrolled sideways.
        #expect(!page.contains("<table class=\"wide\"") && !page.contains("overflow-x"))
    }

    @Test func `what happens step by step is made from what was measured`() async throws {
        let scene = try TourScene(pause: .zero)
        let pages = try #require(tables(try await scene.paging()).last).rows
        #expect(pages.count == 12 && number(pages[1][2]) > 0 && pages[1][4] == .count(20) && pages[1][5] == .count(0))
        #expect(try #require(tables(try await scene.reads()).first).rows.count == 6)
    }

    @Test func `chapters are chosen by name`() throws {
        let arguments = try Arguments(["tour", "reads", "paging", "--html", "page.html"])
        #expect(arguments.name == "tour" && arguments.words == ["reads", "paging"] && arguments.page == "page.html")
        #expect(throws: UsageError.self) { try Arguments(["tour", "nowhere"]) }
        #expect(throws: UsageError.self) { try Arguments(["feed", "--html", "x"]) }
    }

    @Test func `a visit with the SDK does every write once on every network`() async throws {
        let chapter = try await TourScene(pause: .zero).features()
        guard case .table(let table) = chapter.exhibits.first else {
            Issue.record("no table")
            return
        }
        #expect(table.rows.count == 15)
        let twice = table.columns.count - 1
        for index in stride(from: 0, to: 15, by: 3) {
            #expect(table.rows[index][1] == .text("Larder"))
            #expect(table.rows[index][twice] == .count(0), "\(table.rows[index])")
        }
        // On a good network: no error, nothing undone, and the feed is there after a restart and offline.
        #expect(table.rows[0].suffix(3) == [.count(0), .count(0), .count(0)], "\(table.rows[0])")
        // A dictionary cannot show anything offline after a restart.
        #expect(table.rows[2].suffix(3).first == .count(2), "\(table.rows[2])")
    }

    @Test func `the guard shrinks caches under pressure, and a scan does not empty the adaptive tier`() async throws {
        let scene = try TourScene(pause: .zero)
        let pressure = scene.pressure()
        guard case .table(let limits) = pressure.exhibits[0], case .flow(let path)? = pressure.exhibits.last else {
            Issue.record("\(pressure.exhibits)")
            return
        }
        #expect(limits.rows.prefix(3).map { $0[2].text } == ["100 %", "50 %", "0 %"], "\(limits.rows)")
        #expect(limits.rows[2].suffix(2) == [.text("cancelled"), .text("off")], "\(limits.rows)")
        // At the end both use what they may, and prefetching comes last.
        #expect(limits.rows.last?.dropFirst() == limits.rows[0].dropFirst() && limits.rows.count > 5, "\(limits.rows)")
        #expect(limits.rows.dropLast().last?.last == .text("off"), "\(limits.rows)")
        #expect(path.title == "Memory is short")
        let eviction = try await scene.eviction()
        guard case .table(let steps) = eviction.exhibits[0], case .table(let rates) = eviction.exhibits[1],
            case .tryout(let tryout) = eviction.exhibits[2]
        else {
            Issue.record("\(eviction.exhibits)")
            return
        }
        #expect(rates.columns.count == 5 && rates.rows.count == 4 && tryout.reads.count == steps.rows.count)
        #expect(steps.rows[5].first == .text("e") && steps.rows[5].last == .text("stored; b leaves, read longest ago"))
    }

    @Test func `a flow and a place for own reads are drawn in the page`() {
        var chapter = TourChapter(name: "name", title: "title", question: "?")
        chapter.exhibits = [
            .flow(TourFlow(title: "flow", steps: [.init(text: "a < b?", yes: "c"), .init(text: "d")])),
            .tryout(TourTryout(title: "own", reads: ["x", "y"], room: 2)),
        ]
        let page = TourPage(chapters: [chapter], conditions: "").html
        #expect(page.contains("<li class=\"asks\"><div class=\"box warning\">a &lt; b?</div>"))
        #expect(
            page.contains(">yes</span><div class=\"box good\">c</div></li><li><div class=\"box neutral\">d</div></li>")
        )
        #expect(page.contains("value=\"x y\"") && page.contains("data-room=\"2\"") && page.contains("split(/\\s+/)"))
    }

    private func tables(_ chapter: TourChapter) -> [TourTable] {
        chapter.exhibits.compactMap { if case .table(let table) = $0 { table } else { nil } }
    }

    private func number(_ value: TourValue) -> Int64 { value.json.integer ?? -1 }

    @Test func `a tap that is stored first is counted once on every network`() async throws {
        let chapter = try await TourScene(pause: .zero).taps()
        let rows = try #require(tables(chapter).first).rows
        let (later, through) = (
            rows.filter { $0[1] == .text("write-behind") }, rows.filter { $0[1] == .text("write-through") }
        )
        #expect(
            rows.count == 15 && later.count == 5 && later.allSatisfy { $0[5] == .count(1) && $0[2] != .none },
            "\(rows)"
        )
        // Shown when the server has it, or said to be in doubt and known later; never counted twice.
        #expect(through.allSatisfy { $0[5] == .count(1) && $0[3] != .none && $0[4] != .none }, "\(through)")
        #expect(through.allSatisfy { ($0[2] == .none) == $0[6].text.hasPrefix("inDoubt") }, "\(through)")
        #expect(through[3][2] == .none && number(through[2][2]) > 2_000_000_000, "\(through)")
    }

    @Test func `a lifetime drains while a person looks, and the server is asked when nothing is left`() async throws {
        let rows = try await TourScene(pause: .zero).draining().rows
        func seconds(_ column: Int) -> [Int64] { rows.map { number($0[column]) / 1_000_000_000 } }
        #expect(
            seconds(2) == [0, 210, 120, 30, 0, 210, 120, 30] && seconds(4) == [300, 210, 120, 30, 300, 210, 120, 30]
        )
        #expect(rows.map { String($0[3].text.prefix(3)) } == ["200", "no ", "no ", "no ", "304", "no ", "no ", "no "])
        #expect(rows[3][2].text == "30.0 s" && rows[4][1] == .text("stale (expired)"))
    }

    @Test func `a version asked at each look is always right, and an event costs less`() async throws {
        let chapter = try await TourScene(pause: .zero).invalidation()
        let rows = try #require(tables(chapter).first).rows
        #expect(tables(chapter).last?.rows.count == 8, "The lifetime that drains is shown too.")
        #expect(rows.map { $0[0].text }.last == "event, then the change feed" && rows.count == 5)
        #expect(rows[2][3] == .count(0) && number(rows[0][3]) <= number(rows[1][3]), "\(rows)")
        #expect(number(rows[4][1]) < number(rows[2][1]) && number(rows[1][1]) < number(rows[0][1]), "\(rows)")
        // A version that a push tells costs no request until the next look.
        #expect(rows[3][3] == .count(0) && number(rows[3][1]) < number(rows[0][1]), "\(rows)")
    }
}

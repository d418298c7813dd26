import LarderArguments
import LarderCoding
import TestSupport
import Testing

@testable import LarderCommand

@Suite("Command: the tour", .oneMinute)
struct TourTests {
    @Test func `bars are proportional to values, or to their logarithms`() {
        var bars = TourBars(title: "t", bars: [("a", .count(50)), ("b", .count(100)), ("c", .count(0))])
        #expect(bars.lengths == [0.5, 1, 0])
        bars = TourBars(
            title: "t",
            isLogarithmic: true,
            bars: [("a", .count(1)), ("b", .count(10)), ("c", .count(100))]
        )
        #expect(bars.lengths.map { ($0 * 100).rounded() } == [10, 55, 100])
        #expect(TourBars(title: "t", bars: []).lengths.isEmpty)
    }

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

    @Test func `the page shows every exhibit, and text cannot become markup`() {
        let steps = TourSteps(
            title: "steps",
            steps: [
                .init(caption: "first", boxes: [.init(label: "box", text: "<b>&", tone: .good, share: 0.5)]),
                .init(caption: "second", boxes: []),
            ]
        )
        var chapter = TourChapter(name: "name", title: "A \"title\"", question: "?", answer: "<script>")
        chapter.exhibits = [
            .table(TourTable(title: "table", columns: ["column"], rows: [[.text("<td>")], [.count(7)]])),
            .bars(TourBars(title: "bars", bars: [("bar", .count(1))])),
            .curves(
                TourCurves(title: "curves", x: "s", y: "m", curves: [.init(label: "c", points: [(0, 1), (2, 0)])])
            ),
            .steps(steps),
        ]
        let page = TourPage(chapters: [chapter], conditions: "here & now").html
        #expect(page.contains("<h2>A &quot;title&quot;</h2>") && page.contains("here &amp; now"))
        #expect(page.contains("&lt;td&gt;") && page.contains("<td class=\"number\" data-label=\"column\">7</td>"))
        #expect(page.contains("&lt;b&gt;&amp;") && page.contains("&lt;script&gt;"))
        #expect(page.ranges(of: "<svg").count == 1 && page.ranges(of: "<script>").count == 1)
        #expect(page.contains("1 of 2: first") && page.contains("2 of 2: second"))
        #expect(page.contains("<span class=\"rest\"><i style=\"width:50%\">"))
        #expect(page.contains("<i style=\"width:70%\"></i> 1</span>"), "The longest bar leaves room for its value.")
        #expect(page.contains("M50 10H590V200"), "The curve holds its value until the next point.")
        // Where there is no room for the columns of a table, rows are blocks; no part of the page is scrolled sideways.
        #expect(!page.contains("<table class=\"wide\"") && !page.contains("overflow-x"))
    }

    /// A scene that stops with the test.
    private static func scene() throws -> TourScene {
        let scene = try TourScene(pause: .zero)
        AloneWithinTime.atEnd { await scene.stop() }
        return scene
    }

    @Test func `figures can be stepped through, made from what was measured`() async throws {
        let scene = try Self.scene()
        let pages = try steps(try await scene.paging())
        #expect(
            pages.count == 12 && pages[1].boxes[0].tone == .bad && pages[1].boxes[2].text == "20 posts, 0 seen before"
        )
        #expect(try steps(try await scene.reads()).count == 6)
    }

    @Test func `chapters are chosen by name`() throws {
        let arguments = try Arguments(["tour", "tiers", "paging", "--html", "page.html"])
        #expect(arguments.name == "tour" && arguments.words == ["tiers", "paging"] && arguments.page == "page.html")
        #expect(throws: UsageError.self) { try Arguments(["tour", "nowhere"]) }
        #expect(throws: UsageError.self) { try Arguments(["feed", "--html", "x"]) }
    }

    @Test func `a visit with the SDK does every write once on every network`() async throws {
        let chapter = try await Self.scene().features()
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

    @Test func `the guard holds less memory than cleared caches, and policies are compared`()
        async throws
    {
        let scene = try Self.scene()
        let pressure = try await scene.pressure()
        guard case .curves(let curves)? = pressure.exhibits.first, case .table(let table) = pressure.exhibits[1],
            case .flow(let path)? = pressure.exhibits.last
        else {
            Issue.record("\(pressure.exhibits)")
            return
        }
        // Seven seconds: two after the report. At the end both use what they may.
        let held = curves.curves.map { $0.points[70].y }
        #expect(held[1] < held[0] / 4, "\(held)")
        #expect(curves.curves[1].points[599].y > 90, "\(curves.curves[1].points[599])")
        #expect(table.rows[0][3] == .count(0) && table.rows[1][3] != .count(0), "\(table.rows)")
        #expect(path.title == "Memory is short")
        let eviction = try await scene.eviction()
        guard case .steps(let steps) = eviction.exhibits[0], case .table(let rates) = eviction.exhibits[1],
            case .tryout(let tryout) = eviction.exhibits[2]
        else {
            Issue.record("\(eviction.exhibits)")
            return
        }
        #expect(rates.columns.count == 4 && rates.rows.count == 4 && tryout.reads.count > 9)
        #expect(steps.steps[5].caption == "e is read: not in memory, stored; b leaves, read longest ago")
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
            page.contains(
                ">yes →</span><div class=\"box good\">c</div></li><li><div class=\"box neutral\">d</div></li>"
            )
        )
        #expect(page.contains("value=\"x y\"") && page.contains("data-room=\"2\"") && page.contains("split(/\\s+/)"))
    }

    private func tables(_ chapter: TourChapter) -> [TourTable] {
        chapter.exhibits.compactMap { if case .table(let table) = $0 { table } else { nil } }
    }

    private func number(_ value: TourValue) -> Int64 { value.json.integer ?? -1 }

    @Test func `ways to share memory are compared on the same pictures, and the text names the best of them`()
        async throws
    {
        let chapter = try await Self.scene().budgets()
        let rows = try #require(tables(chapter).first).rows
        #expect(rows.count == 5)
        // A budget of their own keeps portraits, and scores do.
        #expect(number(rows[1][1]) < number(rows[0][1]) && number(rows[4][1]) < number(rows[0][1]), "\(rows)")
        // An album that is larger than its budget fits if the other one lends.
        #expect(number(rows[1][4]) > 0 && rows[2][4] == .count(0) && rows[4][4] == .count(0), "\(rows)")
        let best = try #require(
            rows.min { number($0[3]) + number($0[5]) < number($1[3]) + number($1[5]) }
        )
        #expect(chapter.answer.contains("the least time took '\(best[0].text)'"), "\(chapter.answer)")
    }

    private func steps(_ chapter: TourChapter) throws -> [TourSteps.Step] {
        let all = chapter.exhibits.compactMap { if case .steps(let steps) = $0 { steps } else { nil } }
        return try #require(all.first).steps
    }

    @Test func `a tap that is stored first is counted once on every network`() async throws {
        let chapter = try await Self.scene().taps()
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

        let steps = try steps(chapter)
        #expect(
            steps.count == 5 && steps[3].caption.hasPrefix("Network: first reply lost. Likes counted: write-behind 1, ")
        )
        let events = ["shown", "on disk", "known"]
        let labels = ["write-behind", "write-through", "plain request"].flatMap { name in
            events.map { "\(name): \($0)" }
        }
        for (step, row) in zip(steps, later) {
            #expect(step.boxes.map(\.label) == labels)
            // How soon it is shown depends on the load.
            let tone: TourSteps.Tone = number(row[2]) < 100_000_000 ? .good : .warning
            #expect(step.boxes[0].text == "after \(row[2].text)" && step.boxes[0].tone == tone, "\(step)")
            #expect(step.boxes.compactMap(\.share).max() == 1, "\(step)")
        }
        #expect(steps[3].boxes[3].tone == .bad && steps[3].boxes[3].text.hasPrefix("never; inDoubt"), "\(steps[3])")
        #expect(steps[4].boxes[6].text.hasPrefix("never; error"), "\(steps[4])")
        // A plain request is not stored, which is no error.
        #expect(steps.dropLast().allSatisfy { $0.boxes[7].text == "never" }, "\(steps[0])")
    }

    @Test func `a lifetime drains while a person looks, and the server is asked when nothing is left`() async throws {
        let steps = try await Self.scene().draining().steps
        let percent = steps.map { step in [0, 2].map { Int(((step.boxes[$0].share ?? -1) * 100).rounded()) } }
        #expect(percent.map { $0[0] } == [0, 70, 40, 10, 0, 70, 40, 10])
        #expect(percent.map { $0[1] } == [100, 70, 40, 10, 100, 70, 40, 10])
        let looks = steps.map { String($0.boxes[1].text.prefix(3)) }
        #expect(looks == ["200", "no ", "no ", "no ", "304", "no ", "no ", "no "])
        #expect(
            steps[3].boxes[0].text == "30.0 s of 300.0 s"
                && steps[4].caption == "look 5: the profile was stale (expired)"
        )
    }

    @Test func `a version asked at each look is always right, and an event costs less`() async throws {
        let chapter = try await Self.scene().invalidation()
        let rows = try #require(tables(chapter).first).rows
        #expect(try steps(chapter).count == 8, "The lifetime that drains is shown too.")
        #expect(rows.map { $0[0].text }.last == "event, then the change feed" && rows.count == 5)
        #expect(rows[2][3] == .count(0) && number(rows[0][3]) <= number(rows[1][3]), "\(rows)")
        #expect(number(rows[4][1]) < number(rows[2][1]) && number(rows[1][1]) < number(rows[0][1]), "\(rows)")
        // A version that a push tells costs no request until the next look.
        #expect(rows[3][3] == .count(0) && number(rows[3][1]) < number(rows[0][1]), "\(rows)")
    }
}

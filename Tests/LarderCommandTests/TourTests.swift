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

    private static let chapter = TourChapter(
        name: .tiers,
        question: "one two three four",
        tables: [
            TourTable(
                title: "table",
                columns: ["column", "n"],
                rows: [[.text("<a>&"), .count(7)], [.text(""), .count(10)], [.text("b"), .text("")]]
            )
        ],
        answer: "<script>"
    )

    @Test func `text is wrapped between words, and columns are aligned`() {
        let lines = TourText(width: 9) { text, _ in text }.lines(Self.chapter)
        #expect(
            lines.dropFirst() == [
                "one two", "three", "four", "", "table", "  column  n", "  <a>&     7", "          10", "  b", "",
                "<script>", "",
            ]
        )
        #expect(lines.first?.hasSuffix("   larder tour tiers") == true)
    }

    /// A scene that stops with the test.
    private static func scene(reads: String? = nil) throws -> TourScene {
        let scene = try TourScene(pause: .zero, reads: reads)
        AloneWithinTime.atEnd { await scene.stop() }
        return scene
    }

    @Test func `chapters are chosen by name`() throws {
        let arguments = try Arguments(["tour", "tiers", "eviction", "--reads", "a b"])
        #expect(arguments.name == "tour" && arguments.words == ["tiers", "eviction"])
        #expect(arguments.reads == "a b")
        #expect(throws: UsageError.self) { try Arguments(["tour", "nowhere"]) }
        #expect(throws: UsageError.self) { try Arguments(["feed", "--reads", "x"]) }
    }

    @Test func `a visit with the SDK does every write once on every network`() async throws {
        let table = try #require(try await Self.scene().features().tables.first)
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

    @Test func `reads of one's own are played through a memory tier`() async throws {
        let chapter = try await Self.scene(reads: "a a b c f e a").eviction()
        let rows = try #require(chapter.tables.first).rows
        // The fifth value is stored in place of what was read longest ago.
        #expect(rows.count == 7 && rows[5].map(\.text) == ["e", "no", "a", "b c e f"], "\(rows)")
        #expect(chapter.answer.hasPrefix("1 of 7 reads found"), "\(chapter.answer)")
        let usual = try await Self.scene().eviction()
        #expect(usual.answer.hasPrefix("4 of 12 reads found"), "\(usual.answer)")
    }

    private func number(_ value: TourValue) -> Int64 { value.json.integer ?? -1 }

    @Test func `a tap that is stored first is counted once on every network`() async throws {
        let rows = try #require(try await Self.scene().taps().tables.first).rows
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
        let waiting = rows.filter { $0[1] == .text("plain request") }
        // A plain request is not stored, and fails without a network.
        #expect(waiting.allSatisfy { $0[3] == .none } && waiting[4][6].text.hasPrefix("error"), "\(waiting)")
    }

    @Test func `a version asked at each look is always right, and an event costs less`() async throws {
        let rows = try #require(try await Self.scene().invalidation().tables.first).rows
        #expect(rows.map { $0[0].text }.last == "event, then the change feed" && rows.count == 5)
        #expect(rows[2][3] == .count(0) && number(rows[0][3]) <= number(rows[1][3]), "\(rows)")
        #expect(number(rows[4][1]) < number(rows[2][1]) && number(rows[1][1]) < number(rows[0][1]), "\(rows)")
        // A version that a push tells costs no request until the next look.
        #expect(rows[3][3] == .count(0) && number(rows[3][1]) < number(rows[0][1]), "\(rows)")
    }
}

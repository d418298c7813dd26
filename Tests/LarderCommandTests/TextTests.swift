import Foundation
import LarderCoding
import LarderEvents
import LarderImages
import LarderModels
import LarderTime
import TestSupport
import Testing

@testable import LarderCommand
@testable import LarderResources

@Suite("Command: text", .oneMinute)
struct TextTests {
    private func units(_ text: String, _ currency: String = "EUR") -> Int64? {
        (try? MoneyText.parse(text, currency: currency))?.minorUnits
    }

    @Test func `IDs of the server cannot control the terminal`() throws {
        let text = """
            {"id": "post_1\\u001b[2J", "authorId": "user_1\\u001b]0;x\\u0007", "text": "hi", "likeCount": 1, "likedByMe": false,
            "version": 1, "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
            """
        let post = try JSONDecoder().decode(Post.self, from: Data(text.utf8))
        let lines = PostLine.changes([], [post], [:])
        for color in ["never", "always"] {
            let terminal = Terminal(try Arguments(["feed", "--colour", color], environment: [:]), environment: [:])
            #expect(lines.map(terminal.printable) == ["+ post_1·[2J user_1·]0;x· ♥ 1: hi"])
            let painted = terminal.paint("red", .red) + "\u{1b}[8m\u{1b}]0;x\u{7}\u{1b}"
            #expect(
                terminal.printable(painted)
                    == (terminal.hasColor ? "\u{1b}[31mred\u{1b}[0m·[8m·]0;x··" : "red·[8m·]0;x··")
            )
        }
    }

    private func posts(_ numbers: ClosedRange<Int>) throws -> [Post] {
        let items = numbers.reversed().map { number in
            """
            {"id": "post_\(number)", "authorId": "user_1", "text": "hi", "likeCount": 1, "likedByMe": false, "version": 1,
            "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
            """
        }
        return try JSONDecoder().decode([Post].self, from: Data("[\(items.joined(separator: ","))]".utf8))
    }

    @Test func `a deleted post is shown, and one beyond the end of the list is not`() throws {
        let posts = try posts(1...4)
        let deleted = posts.filter { $0.id != "post_3" }
        #expect(PostLine.changes(posts, deleted, [:]) == ["- post_3"])
        // The list keeps four posts, and a new one comes.
        let kept = Array(posts.dropFirst())
        #expect(PostLine.changes(kept, Array(posts.dropLast()), [:]) == ["+ post_4 user_1 ♥ 1: hi"])
    }

    // MARK: Money

    @Test func `amounts are parsed exactly, with the digits of their currency`() {
        #expect(units("12") == 1_200 && units("12.5") == 1_250 && units("12.50") == 1_250 && units("0.01") == 1)
        #expect(units("12", "JPY") == 12 && units("1.234", "BHD") == 1_234)
        // Not representable as a Double.
        #expect(units("90071992547409.93") == 9_007_199_254_740_993)
        #expect(units("92233720368547758.07") == .max)
    }

    @Test(arguments: [
        "", ".", "1.", ".5", "-1", "+1", "1,5", "1.234", "1e3", "0", "0.00", "12.50 ", "٣", "92233720368547758.08",
        "1.2.3",
    ])
    func `invalid amounts are rejected`(text: String) { #expect(units(text) == nil) }

    @Test func `yen have no fraction`() { #expect(units("12.5", "JPY") == nil) }

    @Test func `amounts round-trip through text`() {
        func text(_ units: Int64, _ currency: String = "EUR") -> String {
            MoneyText.text(Money(minorUnits: units, currency: currency))
        }
        #expect(text(1_250) == "12.50 EUR" && text(5) == "0.05 EUR" && text(-5) == "-0.05 EUR")
        #expect(text(12, "JPY") == "12 JPY" && text(1, "KWD") == "0.001 KWD")
        #expect(text(.min) == "-92233720368547758.08 EUR")
        var random = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            let amount = Int64.random(in: 1 ... .max, using: &random)
            for currency in ["EUR", "JPY", "BHD"] {
                let written = text(amount, currency)
                #expect(units(String(written.dropLast(4)), currency) == amount, "seed 7: \(written)")
            }
        }
    }

    // MARK: Badges

    private let now = WallTime(seconds: 1_790_000_000)

    private func snapshot(_ freshness: Freshness, _ source: CacheTier? = nil, validated age: Duration? = nil)
        -> Snapshot<Int>
    {
        let times = age.map { Freshness.Times(fetchedAt: now - $0, validatedAt: now - $0, expiresAt: now) }
        return Snapshot(freshness: freshness, source: source, times: times, isFetching: false, revision: 1)
    }

    @Test func `a badge shows age, freshness, source and pending changes`() {
        var snapshot = snapshot(.stale(.expired), .disk, validated: .seconds(125))
        snapshot.pendingChanges = 1
        #expect(
            snapshot.badge(at: now)
                == "May be outdated, updated 2 min ago · stale: expired · from disk · 1 change pending"
        )
        snapshot.pendingChanges = 2
        snapshot.isFetching = true
        snapshot.refreshError = LarderError(.offline, "There is no network.")
        #expect(snapshot.badge(at: now).hasPrefix("Offline, updated 2 min ago · stale: expired"))
        #expect(snapshot.badge(at: now).hasSuffix("2 changes pending · refreshing… · not refreshed: offline"))
        snapshot = self.snapshot(.fresh, .network, validated: .zero)
        #expect(snapshot.badge(at: now).hasPrefix("Updated just now · fresh"))
        #expect(snapshot.badgeJSON["freshness"]?.string == "fresh" && snapshot.badgeJSON["reason"] == nil)
    }

    @Test func `a badge shows no age if it is unknown`() {
        var snapshot = snapshot(.missing)
        #expect(snapshot.badge(at: now) == "Not loaded" && snapshot.badgeJSON["freshness"]?.string == "missing")
        snapshot = self.snapshot(.stale(.clockUncertain), .disk, validated: .seconds(5))
        #expect(snapshot.badge(at: now) == "May be outdated · stale: clock set back · from disk")
        snapshot = self.snapshot(.stale(.neverValidated), validated: .zero)
        snapshot.times?.validatedAt = Freshness.Times.never
        #expect(snapshot.badge(at: now) == "Not on the server yet · stale: never validated")
        #expect(snapshot.badgeJSON["validatedAt"] == nil && snapshot.badgeJSON["freshness"]?.string == "stale")
    }

    @Test func `ages and sizes are rounded down to one unit`() {
        let ages: [(Int64, String)] = [
            (0, "just now"), (59, "59 s ago"), (60, "1 min ago"), (3_599, "59 min ago"), (3_600, "1 h ago"),
            (90_000, "1 d ago"), (-90, "in 1 min"),
        ]
        for (seconds, text) in ages { #expect(TimeText.text(from: now - .seconds(seconds), to: now) == text) }
        #expect(TimeText.text(.microseconds(900)) == "900 µs" && TimeText.text(.milliseconds(1_250)) == "1.2 s")
        #expect(SizeText.text(812) == "812 B" && SizeText.text(1_536) == "1.5 KB" && SizeText.text(5 << 20) == "5.0 MB")
        #expect(SizeText.text(3 << 30) == "3.0 GB")
    }

    // MARK: Text

    @Test func `text of the server cannot control the terminal`() {
        #expect(TextWidth.clean("a\u{1b}[2Jb\u{7}\nc\u{9b}d\u{202e}e") == "a·[2Jb· c·d·e")
        #expect(TextWidth.clean("Grüße 👋🏽 日本") == "Grüße 👋🏽 日本")
    }

    @Test func `text is cut by columns, not by characters`() {
        #expect(TextWidth.columns("日本") == 4 && TextWidth.columns("é") == 1 && TextWidth.columns("👋🏽") == 2)
        #expect(TextWidth.fit("short", 10) == "short" && TextWidth.fit("日本語です", 7) == "日本語…")
        #expect(TextWidth.pad("日", 4) == "日  " && TextWidth.pad("\u{7}", 2) == "· ")
        #expect(TextWidth.fit("a\u{1b}[2J", 9) == "a·[2J")
    }
}

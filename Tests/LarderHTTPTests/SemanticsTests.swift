import LarderTime
import TestSupport
import Testing

@testable import LarderHTTP

@Suite("Preconditions, RFC 9110 §13.2.2", .oneMinute)
struct PreconditionsTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var match: String?
        var noneMatch: String?
        var modified: String?
        var unmodified: String?
        var method = Method.get
        var exists = true
        var outcome: PreconditionOutcome

        var testDescription: String {
            "\(method) \(match ?? "-") \(noneMatch ?? "-") \(modified ?? "-") \(unmodified ?? "-") \(exists)"
        }
    }

    static let changed = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let before = "Sun, 06 Nov 1994 08:49:36 GMT"
    static let after = "Sun, 06 Nov 1994 08:49:38 GMT"

    static let now = WallTime(seconds: 1_767_225_600)

    static let table: [Row] = [
        Row(outcome: .proceed),
        Row(noneMatch: "\"a\"", outcome: .notModified),
        Row(noneMatch: "W/\"a\"", outcome: .notModified),
        Row(noneMatch: "\"x\", \"a\"", outcome: .notModified),
        Row(noneMatch: "*", outcome: .notModified),
        Row(noneMatch: "\"x\"", outcome: .proceed),
        Row(noneMatch: "a", outcome: .proceed),
        Row(noneMatch: "\"a\"", method: .head, outcome: .notModified),
        Row(noneMatch: "\"a\"", method: .put, outcome: .preconditionFailed),
        Row(noneMatch: "*", method: .put, outcome: .preconditionFailed),
        Row(match: "\"a\"", method: .patch, outcome: .proceed),
        Row(match: "*", method: .patch, outcome: .proceed),
        Row(match: "W/\"a\"", method: .patch, outcome: .preconditionFailed),
        Row(match: "\"x\"", method: .patch, outcome: .preconditionFailed),
        Row(match: "a", method: .patch, outcome: .preconditionFailed),
        Row(match: "\"x\"", unmodified: after, method: .patch, outcome: .preconditionFailed),
        Row(match: "\"a\"", unmodified: before, method: .patch, outcome: .proceed),
        Row(unmodified: before, method: .patch, outcome: .preconditionFailed),
        Row(unmodified: changed, method: .patch, outcome: .proceed),
        Row(unmodified: "yesterday", method: .patch, outcome: .proceed),
        Row(modified: changed, outcome: .notModified),
        Row(modified: after, outcome: .notModified),
        Row(modified: before, outcome: .proceed),
        Row(modified: "yesterday", outcome: .proceed),
        Row(modified: changed, method: .post, outcome: .proceed),
        Row(noneMatch: "\"x\"", modified: after, outcome: .proceed),
        Row(match: "\"a\"", noneMatch: "\"a\"", outcome: .notModified),
        // Without a representation, `*` and every tag fail to match.
        Row(match: "*", method: .put, exists: false, outcome: .preconditionFailed),
        Row(match: "\"a\"", method: .put, exists: false, outcome: .preconditionFailed),
        Row(noneMatch: "*", method: .put, exists: false, outcome: .proceed),
        Row(noneMatch: "\"a\"", method: .put, exists: false, outcome: .proceed),
        Row(unmodified: before, method: .put, exists: false, outcome: .proceed),
        Row(modified: after, exists: false, outcome: .proceed),
    ]

    @Test(arguments: table)
    func `preconditions are evaluated in order, each with its own comparison`(row: Row) throws {
        let conditions = Preconditions(
            ifMatch: row.match,
            ifNoneMatch: row.noneMatch,
            ifModifiedSince: row.modified,
            ifUnmodifiedSince: row.unmodified
        )
        let outcome = conditions.evaluate(
            method: row.method,
            exists: row.exists,
            entityTag: row.exists ? EntityTag(opaque: "a") : nil,
            lastModified: row.exists ? HTTPDate.parse(Self.changed, now: Self.now) : nil,
            now: Self.now
        )
        #expect(outcome == row.outcome)
    }

    @Test func `If-Range holds for a strong tag or the exact strong date only`() throws {
        let tag = try #require(EntityTag(opaque: "a"))
        let date = try #require(HTTPDate.parse(Self.changed, now: Self.now))
        func holds(_ value: String, _ sent: WallTime = Self.now, _ modified: WallTime? = nil) -> Bool {
            Preconditions.ifRangeHolds(value, entityTag: tag, lastModified: modified, date: sent)
        }
        #expect(holds("\"a\""))
        #expect(!holds("W/\"a\""))
        #expect(holds(Self.changed, Self.now, date))
        #expect(!holds(Self.after, Self.now, date))
        // Within the second of the change, a date does not identify the content.
        #expect(!holds(Self.changed, date, date))
        #expect(holds(Self.changed, date + .seconds(1), date))
    }
}

@Suite("Content-Range, RFC 9110 §14.4", .oneMinute)
struct ContentRangeTests {
    @Test func `one range of bytes is read`() {
        let range = ContentRange(parsing: "bytes 0-4/10")
        #expect(range?.bytes == 0..<5 && range?.total == 10)
        #expect(ContentRange(parsing: "BYTES 4-4/*")?.bytes == 4..<5)
    }

    @Test(arguments: [
        "", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes -4/10", "bytes 0-/10", "bytes 0-4", "bytes 0-4/10/1",
        "lines 0-4/10", "bytes=0-4/10", "bytes 0-4/x", "bytes +0-4/10", "bytes 0-9223372036854775807/*",
        "bytes 0-99999999999999999999/*",
    ])
    func `anything else is nothing`(text: String) { #expect(ContentRange(parsing: text) == nil) }
}

@Suite("HTTP dates", .oneMinute)
struct HTTPDateTests {
    static let now = WallTime(seconds: 1_767_225_600)

    @Test(arguments: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])
    func `all three date forms are parsed`(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now)?.seconds == 784_111_777)
    }

    @Test(arguments: [
        "sun, 06 nov 1994 08:49:37 gmt", "SUN, 06 NOV 1994 08:49:37 GMT", "sunday, 06-NOV-94 08:49:37 gmt",
        "SUN nov  6 08:49:37 1994",
    ])
    func `the case of weekday, month and zone is ignored, RFC 9111 §4.2`(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now)?.seconds == 784_111_777)
    }

    @Test(arguments: [
        "Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT", "Sun, 06 Nov  1994 08:49:37 GMT",
        "Sun, 06 Nov 1994  08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37  GMT", "Sunday,  06-Nov-94 08:49:37 GMT",
        "Sun  Nov  6 08:49:37 1994", "Sun Nov 6 08:49:37 1994", "Sun Nov  06 08:49:37 1994",
        "Sun Nov   6 08:49:37 1994", "Sun Nov  6  08:49:37 1994", "Sun,\t06 Nov 1994 08:49:37 GMT",
    ])
    func `parts are separated by one space, RFC 9110 §5.6.7`(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now) == nil)
    }

    @Test(arguments: [
        (1_767_225_600, "75", 2075), (1_767_225_600, "76", 2076), (1_767_225_600, "77", 1977),
        (1_767_225_600, "00", 2000),
        (4_070_908_800, "05", 2105), (946_684_799, "49", 2049), (946_684_799, "50", 1950), (-1_577_923_200, "94", 1894),
    ])
    func `a year of two digits is at most 50 years ahead`(now: Int64, digits: String, year: Int) throws {
        let text = "Monday, 01-Jan-\(digits) 00:00:00 GMT"
        let time = try #require(HTTPDate.parse(text, now: WallTime(seconds: now)))
        #expect(HTTPDate.format(time).contains(" \(year) "))
    }

    @Test(arguments: [
        ("Fri, 31 Dec 9999 23:59:59 GMT", Int64.max), ("Tue, 29 Feb 9996 00:00:00 GMT", .max),
        ("Mon, 01 Jan 0001 00:00:00 GMT", .min), ("Mon, 01 Jan 1900 00:00:00 GMT", -2_208_988_800_000_000_000),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800_000_000_000),
    ])
    func `the earliest and latest dates are parsed`(text: String, nanoseconds: Int64) {
        #expect(HTTPDate.parse(text, now: Self.now)?.nanosecondsSinceEpoch == nanoseconds)
    }

    @Test(arguments: [
        "Mon, 29 Feb 9999 00:00:00 GMT", "Fri, 31 Dec 9999 24:00:00 GMT", "Fri, 00 Dec 9999 00:00:00 GMT",
        "", "0", "-1", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 6 Nov 1994 8:49:37 GMT",
        "So, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov +994 08:49:37 GMT", "Sunday, 06-Nov-+4 08:49:37 GMT",
        String(repeating: "Sun, ", count: 200_000),
    ])
    func `an invalid date is rejected`(text: String) { #expect(HTTPDate.parse(text, now: Self.now) == nil) }

    @Test(arguments: [
        "Fri, 31 Dec 9999 23:59:59 GMT", "Fri Dec 31 23:59:59 9999", "Thu, 29 Feb 2400 00:00:00 GMT",
        "Wed, 01 Jan 2251 00:00:00 GMT",
    ])
    func `a date beyond the range becomes its end`(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now) == WallTime(nanosecondsSinceEpoch: .max))
    }

    @Test(arguments: [
        "Thu, 29 Feb 2500 00:00:00 GMT", "Fri, 32 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 9999 24:00:00 GMT",
    ])
    func `a day that does not exist is rejected`(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now) == nil)
    }

    @Test func `a formatted date is parsed to the same time`() {
        var random = SeededGenerator(seed: 0x5EED_0003)
        for _ in 0..<1_000 {
            let time = WallTime(seconds: Int64(random.uniform(in: 0..<8_000_000_000)))
            #expect(HTTPDate.parse(HTTPDate.format(time), now: Self.now) == time)
            #expect(HTTPDate.format(time).utf8.count == HTTPDate.byteCount)
        }
    }
}

@Suite("Fields and values", .oneMinute)
struct FieldsTests {
    @Test func `names are case-insensitive, and fields keep their order and repeats`() {
        var fields: Fields = [.etag: "\"a\""]
        fields.add(.vary, "Origin")
        fields.add(.vary, "Accept")
        #expect(fields["VARY"] == "Origin")
        #expect(fields.combined(.vary) == "Origin, Accept")
        fields.set(.vary, "*")
        #expect(fields.values(of: .vary) == ["*"])
    }

    @Test func `a value cannot end its line`() {
        let fields: Fields = [.location: "/a\r\nSet-Cookie: x\u{0}"]
        #expect(fields[.location] == "/a  Set-Cookie: x ")
    }

    @Test(arguments: ["", "a b", "a:", "ä", "a\n"])
    func `a name is a token`(text: String) { #expect(FieldName(text) == nil) }

    @Test(arguments: [
        ("bytes=0-4", 0..<5), ("bytes=5-", 5..<10), ("bytes=-3", 7..<10), ("bytes=0-99", 0..<10), ("bytes=-99", 0..<10),
        ("BYTES=9-9", 9..<10), ("bytes=0-99999999999999999999", 0..<10),
    ])
    func `a range is resolved against the length`(text: String, bytes: Range<Int>) {
        #expect(ByteRange.parse(text)?.first?.resolved(against: 10) == bytes)
    }

    @Test(arguments: ["bytes=10-", "bytes=-0", "bytes=11-12"])
    func `a range outside of the content is not satisfiable`(text: String) throws {
        let range = try #require(ByteRange.parse(text)?.first)
        #expect(range.resolved(against: 10) == nil)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=5-4", "bytes=a-b", "lines=0-4", "bytes=1-2-3", "bytes=0-4 5",
        "bytes=0 -4",
    ])
    func `an invalid range is ignored`(text: String) { #expect(ByteRange.parse(text) == nil) }

    @Test(arguments: [
        ("*/*", true), ("application/json", true), ("text/html", false), ("application/*;q=0.1", true),
        ("application/json;q=0", false), ("text/html, application/json;q=0.5", true), ("*/*;q=0", false),
        ("application/json;q=0, */*", false), ("", true), ("text/html, *; q=.2, */*; q=.2", true),
    ])
    func `Accept is negotiated by the most specific range`(text: String, isAccepted: Bool) {
        #expect(Accept(parsing: text).accepts("application/json") == isAccepted)
    }

    @Test func `structured strings are parsed by the grammar of RFC 9651 only`() {
        #expect(StructuredField.string(parsing: #""a\"b\\c""#) == #"a"b\c"#)
        #expect(StructuredField.string(parsing: #""a\n""#) == nil)
        #expect(StructuredField.string(parsing: "a") == nil)
    }

    @Test func `a query is decoded completely or rejected`() {
        let query = QueryString(parsing: Array("a=1&a=2&b=%F0%9F%91%8B+x&c".utf8))
        #expect(query?.items.map(\.name) == ["a", "a", "b", "c"])
        #expect(query?.first("b") == "👋 x")
        #expect(QueryString(parsing: Array("a=%zz".utf8)) == nil)
        #expect(QueryString(parsing: Array("a=%ff".utf8)) == nil)
    }
}

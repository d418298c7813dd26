import LarderHTTP
import LarderHTTPCache
import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

/// Behaviours of HTTP caches, one row each: what a server says, what is asked for later, and where the answer comes from.
@Suite("HTTP cache, behaviour by behaviour", .oneMinute)
struct HTTPCacheConformanceTests {
    enum Expectation: Sendable, Equatable {
        case network, hit, revalidated, stale, rejected
    }

    struct Step: Sendable {
        var pause: Int64 = 0
        var method = LarderHTTP.Method.get
        var request = Fields()
        var status = 200
        var reply = Fields()
        var body = "content"
        var expected: Expectation
        /// Fields that the answer must have; with "-" as the value: must not have.
        var fields = Fields()
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [Step]

        init(_ name: String, _ steps: Step...) {
            testDescription = name
            self.steps = steps
        }
    }

    static let start = WallTime(seconds: 1_790_000_000)
    static func at(_ seconds: Int64) -> String { HTTPDate.format(start + .seconds(seconds)) }

    /// The first exchange.
    static func stored(_ reply: Fields, _ request: Fields = Fields(), status: Int = 200, body: String = "content")
        -> Step
    {
        Step(request: request, status: status, reply: reply, body: body, expected: .network)
    }

    /// A later request, after a pause. The server would answer with `reply`, which is a 304 where a validation is expected.
    static func then(
        _ pause: Int64 = 0,
        _ expected: Expectation,
        _ request: Fields = Fields(),
        reply: Fields = Fields(),
        status: Int? = nil,
        has fields: Fields = Fields(),
        method: LarderHTTP.Method = .get
    ) -> Step {
        Step(
            pause: pause,
            method: method,
            request: request,
            status: status ?? (expected == .revalidated ? 304 : 200),
            reply: reply,
            body: "other",
            expected: expected,
            fields: fields
        )
    }

    static let x = FieldName.custom("X-Test")

    static let freshness: [Row] = [
        Row("nothing said: asked again", stored([:]), then(1, .network)),
        Row("max-age: fresh", stored([.cacheControl: "max-age=60"]), then(59, .hit, has: [.age: "59"])),
        Row("max-age: over", stored([.cacheControl: "max-age=60"]), then(60, .network)),
        Row("max-age=0", stored([.cacheControl: "max-age=0"]), then(0, .network)),
        Row("max-age of 68 years and more", stored([.cacheControl: "max-age=99999999999"]), then(1_000_000, .hit)),
        Row("max-age with Age", stored([.cacheControl: "max-age=60", .age: "50"]), then(9, .hit, has: [.age: "59"])),
        Row("max-age used up by Age", stored([.cacheControl: "max-age=60", .age: "60"]), then(0, .network)),
        Row("an Age that is none", stored([.cacheControl: "max-age=60", .age: "x"]), then(59, .hit)),
        Row("an old Date ages it", stored([.cacheControl: "max-age=60", .date: at(-60)]), then(0, .network)),
        Row("a Date in the future does not", stored([.cacheControl: "max-age=60", .date: at(600)]), then(59, .hit)),
        Row("a Date that is none", stored([.cacheControl: "max-age=60", .date: "yesterday"]), then(59, .hit)),
        Row("s-maxage is for shared caches", stored([.cacheControl: "s-maxage=60"]), then(1, .network)),
        Row("max-age before s-maxage", stored([.cacheControl: "s-maxage=0, max-age=60"]), then(1, .hit)),
        Row("malformed max-age is stale", stored([.cacheControl: "max-age=a60", .expires: at(60)]), then(1, .network)),
        Row(
            "the first of two max-age",
            stored([.cacheControl: "max-age=1", .cacheControl: "max-age=60"]),
            then(2, .network)
        ),
        Row(
            "quoted max-age of an extension",
            stored([.cacheControl: "a=\"max-age=60\", max-age=1"]),
            then(2, .network)
        ),
        Row("Expires: fresh", stored([.expires: at(60)]), then(59, .hit)),
        Row("Expires: over", stored([.expires: at(60)]), then(60, .network)),
        Row("Expires counts from Date", stored([.expires: at(60), .date: at(30)]), then(31, .network)),
        Row("max-age before Expires", stored([.cacheControl: "max-age=60", .expires: at(-9)]), then(59, .hit)),
        Row("Expires: 0", stored([.expires: "0", .lastModified: at(-86_400)]), then(0, .network)),
        Row("Expires that is no date", stored([.expires: "tomorrow", .lastModified: at(-86_400)]), then(0, .network)),
        Row("Expires in 1977 written as 77", stored([.expires: "Saturday, 01-Jan-77 00:00:00 GMT"]), then(0, .network)),
        Row(
            "Expires with two spaces is in the past",
            stored([.expires: at(60).replacing(" 20", with: "  20")]),
            then(0, .network)
        ),
        Row("Expires in lower case", stored([.expires: at(60).lowercased()]), then(59, .hit)),
        Row("heuristic: a tenth", stored([.lastModified: at(-600)]), then(59, .hit)),
        Row("heuristic: over", stored([.lastModified: at(-600)]), then(60, .revalidated)),
        Row("heuristic: a day at most", stored([.lastModified: at(-86_400 * 365)]), then(86_400, .revalidated)),
        Row("heuristic: modified after Date", stored([.lastModified: at(600)]), then(0, .revalidated)),
        Row("heuristic: 404", stored([.lastModified: at(-600)], status: 404), then(59, .hit)),
        Row("heuristic: 410", stored([.lastModified: at(-600)], status: 410), then(59, .hit)),
        Row("no heuristic: 302", stored([.lastModified: at(-600)], status: 302), then(1, .network)),
        Row(
            "heuristic where public: 302",
            stored([.lastModified: at(-600), .cacheControl: "public"], status: 302),
            then(1, .hit)
        ),
        Row("an unknown status with max-age", stored([.cacheControl: "max-age=60"], status: 299), then(1, .hit)),
        Row("an unknown status without", stored([.lastModified: at(-600)], status: 299), then(1, .network)),
    ]

    static let storing: [Row] = [
        Row("no-store", stored([.cacheControl: "no-store, max-age=60"]), then(0, .network)),
        Row("no-store with an argument", stored([.cacheControl: "no-store=x, max-age=60"]), then(0, .network)),
        Row(
            "no-store of the request",
            stored([.cacheControl: "max-age=60"], [.cacheControl: "no-store"]),
            then(0, .network)
        ),
        Row(
            "must-understand overrides no-store",
            stored([.cacheControl: "max-age=60, must-understand, no-store"]),
            then(0, .hit)
        ),
        Row(
            "must-understand: unknown status",
            stored([.cacheControl: "max-age=60, must-understand"], status: 299),
            then(0, .network)
        ),
        Row("private is ours", stored([.cacheControl: "private, max-age=60"]), then(0, .hit)),
        Row(
            "private fields too",
            stored([.cacheControl: "private=\"X-Test\", max-age=60", x: "1"]),
            then(0, .hit, has: [x: "1"])
        ),
        Row(
            "Authorization is kept by a private cache",
            stored([.cacheControl: "max-age=60"], [.authorization: "a"]),
            then(0, .hit, [.authorization: "a"])
        ),
        Row(
            "but never given to another",
            stored([.cacheControl: "max-age=60"], [.authorization: "a"]),
            then(0, .network, [.authorization: "b"])
        ),
        Row("nor to nobody", stored([.cacheControl: "max-age=60"], [.authorization: "a"]), then(0, .network)),
        Row(
            "a part is not the whole",
            stored([.cacheControl: "max-age=60", .contentRange: "bytes 0-6/9"], [.range: "bytes=0-6"], status: 206),
            then(0, .network)
        ),
        Row("less than Content-Length", stored([.cacheControl: "max-age=60", .contentLength: "9"]), then(0, .network)),
        Row("exactly Content-Length", stored([.cacheControl: "max-age=60", .contentLength: "7"]), then(0, .hit)),
        Row(
            "decoded content has another length",
            stored([.cacheControl: "max-age=60", .contentLength: "3", .contentEncoding: "gzip"]),
            then(0, .hit)
        ),
        Row(
            "POST is not stored",
            Step(method: .post, reply: [.cacheControl: "max-age=60"], expected: .network),
            then(0, .network)
        ),
        Row(
            "all received fields are stored, cookies too (§3.1)",
            stored([.cacheControl: "max-age=60", .setCookie: "a=1", .custom("Set-Cookie2"): "c=3"]),
            then(0, .hit, has: [.setCookie: "a=1", .custom("Set-Cookie2"): "c=3"])
        ),
        Row(
            "cookies may be kept back by the server (§5.2.2.4)",
            stored([.cacheControl: "max-age=60, no-cache=\"Set-Cookie\"", .setCookie: "a=1"]),
            then(0, .hit, has: [.setCookie: "-"])
        ),
        Row(
            "a 304 replaces cookies (§3.2)",
            stored([.cacheControl: "max-age=1", .etag: "\"1\"", .setCookie: "a=1"]),
            then(2, .revalidated, reply: [.cacheControl: "max-age=60", .setCookie: "a=2"], has: [.setCookie: "a=2"]),
            then(0, .hit, has: [.setCookie: "a=2"])
        ),
        Row(
            "Content-Range means nothing in a 200 (RFC 9110 §14.4)",
            stored([.cacheControl: "max-age=60", .contentRange: "bytes 0-6/9"]),
            then(0, .hit)
        ),
        Row(
            "a known transfer coding that was not removed is not stored",
            stored([.cacheControl: "max-age=60", .transferEncoding: "gzip"]),
            then(0, .network)
        ),
        Row(
            "Transfer-Encoding is not stored (§3.1)",
            stored([.cacheControl: "max-age=60", .transferEncoding: "chunked"]),
            then(0, .hit, has: [.transferEncoding: "-"])
        ),
        Row(
            "fields of the connection are not stored",
            stored([.cacheControl: "max-age=60", .connection: "X-Test, close", x: "1", .keepAlive: "5", .etag: "\"1\""]
            ),
            then(0, .hit, has: [.connection: "-", x: "-", .keepAlive: "-", .etag: "\"1\""])
        ),
        Row(
            "no-cache=\"field\" withholds it",
            stored([.cacheControl: "no-cache=\"X-Test\", max-age=60", x: "1"]),
            then(0, .hit, has: [x: "-"])
        ),
        Row("a Date is added", stored([.cacheControl: "max-age=60", .date: "-"]), then(5, .hit, has: [.date: at(0)])),
    ]

    static let requests: [Row] = [
        Row(
            "no-cache asks",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .revalidated, [.cacheControl: "no-cache"])
        ),
        Row(
            "Pragma asks",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .revalidated, [.pragma: "no-cache"])
        ),
        Row(
            "no-store passes by",
            stored([.cacheControl: "max-age=60"]),
            then(1, .network, [.cacheControl: "no-store"]),
            then(1, .hit)
        ),
        Row(
            "max-age=0 asks",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(0, .revalidated, [.cacheControl: "max-age=0"])
        ),
        Row("max-age enough", stored([.cacheControl: "max-age=60"]), then(10, .hit, [.cacheControl: "max-age=10"])),
        Row(
            "max-age too little",
            stored([.cacheControl: "max-age=60"]),
            then(11, .network, [.cacheControl: "max-age=10"])
        ),
        Row(
            "no-cache reaches the origin, however fresh and immutable",
            stored([.cacheControl: "max-age=60, immutable"]),
            then(0, .network, [.cacheControl: "no-cache"], reply: [.cacheControl: "max-age=60"]),
            then(1, .hit)
        ),
        Row(
            "max-age=0 reaches the origin, also with stale-while-revalidate",
            stored([.cacheControl: "max-age=1, stale-while-revalidate=60"]),
            then(2, .network, [.cacheControl: "max-age=0"])
        ),
        Row(
            "must-revalidate reaches the origin once stale",
            stored([.cacheControl: "max-age=60, must-revalidate", .etag: "\"1\""]),
            then(59, .hit),
            then(1, .revalidated)
        ),
        Row(
            "max-age of the request does not extend the lifetime",
            stored([.cacheControl: "max-age=60"]),
            then(61, .network, [.cacheControl: "max-age=100"])
        ),
        Row(
            "max-age with max-stale",
            stored([.cacheControl: "max-age=60"]),
            then(65, .stale, [.cacheControl: "max-age=100, max-stale=10"]),
            then(0, .network, [.cacheControl: "max-age=64, max-stale=10"])
        ),
        Row(
            "min-fresh of a stale one",
            stored([.cacheControl: "max-age=60"]),
            then(61, .network, [.cacheControl: "min-fresh=0"])
        ),
        Row(
            "only-if-cached with no-cache",
            stored([.cacheControl: "max-age=60"]),
            then(1, .rejected, [.cacheControl: "only-if-cached, no-cache"])
        ),
        Row("min-fresh enough", stored([.cacheControl: "max-age=60"]), then(10, .hit, [.cacheControl: "min-fresh=50"])),
        Row(
            "min-fresh too much",
            stored([.cacheControl: "max-age=60"]),
            then(10, .network, [.cacheControl: "min-fresh=51"])
        ),
        Row("max-stale", stored([.cacheControl: "max-age=60"]), then(9_999, .stale, [.cacheControl: "max-stale"])),
        Row(
            "max-stale enough",
            stored([.cacheControl: "max-age=60"]),
            then(70, .stale, [.cacheControl: "max-stale=10"])
        ),
        Row(
            "max-stale too little",
            stored([.cacheControl: "max-age=60"]),
            then(71, .network, [.cacheControl: "max-stale=10"])
        ),
        Row(
            "max-stale against must-revalidate",
            stored([.cacheControl: "max-age=60, must-revalidate"]),
            then(61, .network, [.cacheControl: "max-stale"])
        ),
        Row(
            "max-stale against no-cache",
            stored([.cacheControl: "no-cache", .etag: "\"1\""]),
            then(1, .revalidated, [.cacheControl: "max-stale"])
        ),
        Row(
            "only-if-cached: there",
            stored([.cacheControl: "max-age=60"]),
            then(1, .hit, [.cacheControl: "only-if-cached"])
        ),
        Row(
            "only-if-cached: stale",
            stored([.cacheControl: "max-age=60"]),
            then(61, .rejected, [.cacheControl: "only-if-cached"])
        ),
        Row("only-if-cached: not there", then(0, .rejected, [.cacheControl: "only-if-cached"])),
        Row("only-if-cached and no-store", then(0, .rejected, [.cacheControl: "only-if-cached, no-store"])),
        Row(
            "only-if-cached with max-stale",
            stored([.cacheControl: "max-age=60"]),
            then(61, .stale, [.cacheControl: "only-if-cached, max-stale"])
        ),
        Row(
            "immutable stands a reload",
            stored([.cacheControl: "max-age=60, immutable", .etag: "\"1\""]),
            then(1, .hit, [.cacheControl: "max-age=0"])
        ),
        Row(
            "but not a forced one",
            stored([.cacheControl: "max-age=60, immutable", .etag: "\"1\""]),
            then(1, .revalidated, [.cacheControl: "no-cache"])
        ),
        Row("nor its end", stored([.cacheControl: "max-age=60, immutable", .etag: "\"1\""]), then(60, .revalidated)),
        Row(
            "own condition, fresh and the same: 304",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .hit, [.ifNoneMatch: "\"1\""], has: [.contentLength: "-"])
        ),
        Row(
            "If-Match is for the server",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .network, [.ifMatch: "\"1\""])
        ),
        Row(
            "a range of what is whole",
            stored([.cacheControl: "max-age=60"]),
            then(1, .hit, [.range: "bytes=0-2"], has: [.contentRange: "bytes 0-2/7"])
        ),
        Row(
            "a range beyond it",
            stored([.cacheControl: "max-age=60"]),
            then(1, .hit, [.range: "bytes=7-"], has: [.contentRange: "bytes */7"])
        ),
        Row(
            "a range under another tag",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .hit, [.range: "bytes=0-2", .ifRange: "\"2\""], has: [.contentRange: "-"])
        ),
        Row(
            "HEAD from a stored GET",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .hit, has: [.etag: "\"1\""], method: .head)
        ),
    ]

    static let validating: [Row] = [
        Row("by tag", stored([.cacheControl: "max-age=1", .etag: "\"1\""]), then(1, .revalidated)),
        Row("by weak tag", stored([.cacheControl: "max-age=1", .etag: "W/\"1\""]), then(1, .revalidated)),
        Row("by date", stored([.cacheControl: "max-age=1", .lastModified: at(-600)]), then(1, .revalidated)),
        Row(
            "no-cache always asks",
            stored([.cacheControl: "no-cache", .etag: "\"1\""]),
            then(0, .revalidated),
            then(0, .revalidated)
        ),
        Row(
            "no-cache over max-age",
            stored([.cacheControl: "max-age=60, no-cache", .etag: "\"1\""]),
            then(0, .revalidated)
        ),
        Row(
            "fresh after a 304",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(60, .revalidated),
            then(59, .hit),
            then(1, .revalidated)
        ),
        Row(
            "a 304 renews Date and lifetime",
            stored([.cacheControl: "max-age=1", .etag: "\"1\""]),
            then(9, .revalidated, reply: [.cacheControl: "max-age=60"], has: [.date: at(9)]),
            then(59, .hit, has: [.date: at(9), .age: "59"])
        ),
        Row(
            "a 304 takes the Age away",
            stored([.cacheControl: "max-age=60", .age: "59", .etag: "\"1\""]),
            then(1, .revalidated),
            then(59, .hit)
        ),
        Row(
            "a 304 replaces fields",
            stored([.cacheControl: "max-age=1", .etag: "\"1\"", x: "1", x: "2"]),
            then(1, .revalidated, reply: [x: "3"], has: [x: "3"]),
            then(0, .hit, has: [x: "3"])
        ),
        Row(
            "and keeps those it does not name",
            stored([.cacheControl: "max-age=1", .etag: "\"1\"", x: "1"]),
            then(1, .revalidated, has: [x: "1"])
        ),
        Row(
            "and never the length",
            stored([.cacheControl: "max-age=60", .etag: "\"1\"", .contentLength: "7"]),
            then(60, .revalidated, reply: [.contentLength: "0"], has: [.contentLength: "7"])
        ),
        Row(
            "a 200 takes its place",
            stored([.cacheControl: "max-age=1", .etag: "\"1\""]),
            then(1, .network, reply: [.cacheControl: "max-age=60", .etag: "\"2\""]),
            then(59, .hit, has: [.etag: "\"2\""])
        ),
        Row(
            "a 200 no-store takes it away",
            stored([.cacheControl: "max-age=1", .etag: "\"1\""]),
            then(1, .network, reply: [.cacheControl: "no-store"]),
            then(0, .network)
        ),
        Row(
            "a 304 with no-store takes it away",
            stored([.cacheControl: "max-age=1", .etag: "\"1\""]),
            then(1, .revalidated, reply: [.cacheControl: "no-store"]),
            then(0, .network)
        ),
        Row(
            "HEAD renews",
            stored([.cacheControl: "max-age=1", .etag: "\"1\"", x: "1"]),
            then(1, .network, reply: [.cacheControl: "max-age=60", .etag: "\"1\"", x: "2"], method: .head),
            then(1, .hit, has: [x: "2"])
        ),
        Row(
            "HEAD with another tag invalidates",
            stored([.cacheControl: "max-age=1, stale-while-revalidate=99", .etag: "\"1\""]),
            then(2, .network, [.cacheControl: "max-age=0"], reply: [.etag: "\"2\""], method: .head),
            then(0, .revalidated)
        ),
        Row(
            "HEAD with another length invalidates",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(2, .network, [.cacheControl: "no-cache"], reply: [.contentLength: "8"], method: .head),
            then(0, .revalidated)
        ),
    ]

    static let staleness: [Row] = [
        Row(
            "stale-if-error: 503",
            stored([.cacheControl: "max-age=1, stale-if-error=60"]),
            then(61, .stale, status: 503)
        ),
        Row(
            "stale-if-error: 503 to HEAD",
            stored([.cacheControl: "max-age=1, stale-if-error=60"]),
            then(61, .stale, status: 503, method: .head),
            then(1, .network, status: 503, method: .head)
        ),
        Row(
            "stale-if-error: over",
            stored([.cacheControl: "max-age=1, stale-if-error=60"]),
            then(62, .network, status: 503)
        ),
        Row(
            "stale-if-error: 404 is an answer",
            stored([.cacheControl: "max-age=1, stale-if-error=60"]),
            then(2, .network, status: 404)
        ),
        Row(
            "stale-if-error of the request",
            stored([.cacheControl: "max-age=1"]),
            then(5, .stale, [.cacheControl: "stale-if-error=60"], status: 500)
        ),
        Row(
            "stale-if-error against must-revalidate",
            stored([.cacheControl: "max-age=1, stale-if-error=60, must-revalidate"]),
            then(5, .network, status: 500)
        ),
        Row(
            "stale-if-error malformed",
            stored([.cacheControl: "max-age=1, stale-if-error=x"]),
            then(5, .network, status: 500)
        ),
        Row("no error, no stale", stored([.cacheControl: "max-age=1, stale-if-error=60"]), then(5, .network)),
        Row(
            "a failure does not replace",
            stored([.cacheControl: "max-age=1, stale-if-error=60"]),
            then(2, .network, [.cacheControl: "no-cache"], reply: [.cacheControl: "max-age=60"], status: 503),
            then(2, .stale, status: 503)
        ),
        Row(
            "stale-while-revalidate",
            stored([.cacheControl: "max-age=1, stale-while-revalidate=60"]),
            then(61, .stale)
        ),
        Row(
            "stale-while-revalidate: over",
            stored([.cacheControl: "max-age=1, stale-while-revalidate=60"]),
            then(62, .network)
        ),
        Row(
            "not where the request says no-cache",
            stored([.cacheControl: "max-age=1, stale-while-revalidate=60"]),
            then(2, .network, [.cacheControl: "no-cache"])
        ),
        Row(
            "nor with must-revalidate",
            stored([.cacheControl: "max-age=1, stale-while-revalidate=60, must-revalidate"]),
            then(2, .network)
        ),
    ]

    static let accept = FieldName.custom("Accept-Language")
    static let variants: [Row] = [
        Row(
            "Vary: the same",
            stored([.cacheControl: "max-age=60", .vary: "X-Test"], [x: "1"]),
            then(1, .hit, [x: "1"])
        ),
        Row(
            "Vary: another",
            stored([.cacheControl: "max-age=60", .vary: "X-Test"], [x: "1"]),
            then(1, .network, [x: "2"])
        ),
        Row("Vary: none now", stored([.cacheControl: "max-age=60", .vary: "X-Test"], [x: "1"]), then(1, .network)),
        Row("Vary: none then", stored([.cacheControl: "max-age=60", .vary: "X-Test"]), then(1, .network, [x: "1"])),
        Row("Vary: neither", stored([.cacheControl: "max-age=60", .vary: "X-Test"]), then(1, .hit)),
        Row(
            "Vary with an Expires that is none",
            stored([.expires: "0", .vary: "X-Test", .etag: "\"1\""], [x: "1"]),
            then(1, .revalidated, [x: "1"]),
            then(1, .network, [x: "2"], reply: [.expires: "0", .vary: "X-Test", .etag: "\"2\""])
        ),
        Row("Vary: *", stored([.cacheControl: "max-age=60", .vary: "*"]), then(1, .network)),
        Row("Vary: * among others", stored([.cacheControl: "max-age=60", .vary: "X-Test, *"]), then(1, .network)),
        Row(
            "Vary on two lines",
            stored([.cacheControl: "max-age=60", .vary: "X-Test", .vary: "Accept"], [.accept: "a/b"]),
            then(1, .network, [.accept: "a/c"])
        ),
        Row(
            "Vary: space and case of languages",
            stored([.cacheControl: "max-age=60", .vary: "accept-LANGUAGE"], [accept: "de, en"]),
            then(1, .hit, [accept: "DE,en"])
        ),
        Row(
            "Vary: their order means nothing",
            stored([.cacheControl: "max-age=60", .vary: "accept-language"], [accept: "de, en;q=0.5"]),
            then(1, .hit, [accept: "en; q=0.50,de"])
        ),
        Row(
            "Vary: their weights do",
            stored([.cacheControl: "max-age=60", .vary: "accept-language"], [accept: "de, en;q=0.5"]),
            then(1, .network, [accept: "en, de;q=0.5"])
        ),
        Row(
            "Vary: content in the preferred language",
            stored(
                [.cacheControl: "max-age=60", .vary: "accept-language", .contentLanguage: "de-CH"],
                [accept: "de, en"]
            ),
            then(1, .hit, [accept: "fr;q=0.5, de;q=1.0"]),
            then(1, .network, [accept: "fr, de;q=0.5"])
        ),
        Row(
            "Vary: two languages preferred alike",
            stored(
                [.cacheControl: "max-age=60", .vary: "accept-language", .contentLanguage: "de"],
                [accept: "de, it"]
            ),
            then(1, .network, [accept: "de, fr"])
        ),
        Row(
            "Vary with no-cache asks for its own",
            stored([.cacheControl: "no-cache", .vary: "X-Test", .etag: "\"1\""], [x: "1"]),
            then(1, .revalidated, [x: "1"])
        ),
        Row(
            "several variants live beside each other",
            stored([.cacheControl: "max-age=60", .vary: "X-Test", .etag: "\"1\""], [x: "1"]),
            then(1, .network, [x: "2"], reply: [.cacheControl: "max-age=60", .vary: "X-Test", .etag: "\"2\""]),
            then(1, .hit, [x: "1"], has: [.etag: "\"1\""]),
            then(1, .hit, [x: "2"], has: [.etag: "\"2\""])
        ),
        Row(
            "a 304 does not choose a variant for another request (§4.3.4)",
            stored([.cacheControl: "max-age=60", .vary: "X-Test", .etag: "\"1\""], [x: "1"]),
            then(1, .network, [x: "2"], reply: [.etag: "\"1\""], status: 304, has: [.etag: "\"1\""]),
            then(1, .network, [x: "2"], reply: [.vary: "X-Test"]),
            then(1, .hit, [x: "1"])
        ),
    ]

    static let invalidation: [Row] = [
        Row(
            "POST invalidates",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .network, method: .post),
            then(1, .revalidated),
            then(1, .hit)
        ),
        Row(
            "so do PUT, DELETE, PATCH",
            stored([.cacheControl: "max-age=60"]),
            then(1, .network, method: .put),
            then(1, .network, reply: [.cacheControl: "max-age=60"]),
            then(1, .network, method: .delete),
            then(1, .network)
        ),
        Row(
            "and methods nobody knows",
            stored([.cacheControl: "max-age=60"]),
            then(1, .network, method: Method("BREW")),
            then(1, .network)
        ),
        Row(
            "a redirect after a change too",
            stored([.cacheControl: "max-age=60"]),
            then(1, .network, status: 303, method: .post),
            then(1, .network)
        ),
        Row(
            "a rejected change does not",
            stored([.cacheControl: "max-age=60"]),
            then(1, .network, status: 403, method: .post),
            then(1, .hit)
        ),
        Row(
            "a failed change does, because its outcome is unknown",
            stored([.cacheControl: "max-age=60", .etag: "\"1\""]),
            then(1, .network, status: 500, method: .post),
            then(1, .revalidated),
            then(1, .network, status: 502, method: .put),
            then(1, .revalidated),
            then(1, .network, status: 504, method: .delete),
            then(1, .revalidated)
        ),
        Row(
            "OPTIONS does not",
            stored([.cacheControl: "max-age=60"]),
            then(1, .network, method: .options),
            then(1, .hit)
        ),
        Row(
            "what is invalid does not stand in",
            stored([.cacheControl: "max-age=60, stale-if-error=600"]),
            then(1, .network, method: .post),
            then(1, .network, status: 503)
        ),
    ]

    @Test(arguments: [freshness, storing, requests, validating, staleness, variants, invalidation].flatMap(\.self))
    func `the answer comes from where it should`(row: Row) async throws {
        let origin = Origin()
        let stage = CacheStage(origin)
        for (index, step) in row.steps.enumerated() {
            stage.clock.advance(by: .seconds(step.pause))
            let now = stage.clock.now
            let asked = origin.count
            origin.answer { _, _ in
                var fields = step.reply
                if fields[.date] == nil { fields.add(.date, HTTPDate.format(now)) }
                if fields[.date] == "-" { fields.remove(.date) }
                let body = step.method == .head || step.status == 304 ? "" : step.body
                return reply(fields, body, status: step.status)
            }
            let response = try await stage.get(step.request, method: step.method)
            await stage.cache.finishBackgroundWork()
            let place = Comment(rawValue: "\(row.testDescription), step \(index): \(response.explanation)")
            #expect(Self.expectation(response.source) == step.expected, place)
            #expect(response.explanation.hasSuffix("."), place)
            if step.expected == .hit || step.expected == .rejected { #expect(origin.count == asked, place) }
            if step.expected == .revalidated {
                #expect(response.status == .ok && response.text == "content", place)
                #expect(
                    origin.requests.last.map {
                        $0.fields.contains(.ifNoneMatch) || $0.fields.contains(.ifModifiedSince)
                    } == true
                )
            }
            if step.expected == .rejected { #expect(response.status == .gatewayTimeout, place) }
            for field in step.fields {
                let wanted = field.value == "-" ? [] : [field.value]
                #expect(response.fields.values(of: field.name) == wanted, place)
            }
        }
    }

    static func expectation(_ source: HTTPCache.Response.Source) -> Expectation {
        switch source {
        case .network, .collapsed: .network
        case .hit: .hit
        case .revalidated: .revalidated
        case .stale: .stale
        case .cacheOnlyMiss: .rejected
        }
    }
}

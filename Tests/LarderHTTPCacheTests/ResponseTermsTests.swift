import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderHTTPCache

@Suite("HTTP cache: terms of a response", .oneMinute)
struct ResponseTermsTests {
    private static let now = WallTime(seconds: 1_790_000_000)
    private static func at(_ seconds: Int64) -> String { HTTPDate.format(now + .seconds(seconds)) }

    private func terms(_ fields: Fields, status: Int = 200, delay: Int64 = 0) -> ResponseTerms {
        ResponseTerms(
            status: Status(code: status),
            fields: fields,
            requestedAt: Self.now - .seconds(delay),
            receivedAt: Self.now
        )
    }

    struct LifetimeRow: Sendable {
        let fields: Fields
        var status = 200
        let lifetime: Int64
        let source: ResponseTerms.Source
    }

    @Test(
        "the lifetime, RFC 9111 §4.2.1 and §4.2.2",
        arguments: [
            LifetimeRow(fields: [.cacheControl: "max-age=60", .expires: at(9)], lifetime: 60, source: .maxAge),
            LifetimeRow(fields: [.cacheControl: "max-age=x"], lifetime: 0, source: .maxAge),
            LifetimeRow(fields: [.cacheControl: "s-maxage=60"], lifetime: 0, source: .none),
            LifetimeRow(fields: [.expires: at(90), .date: at(30)], lifetime: 60, source: .expires),
            LifetimeRow(fields: [.expires: at(-90)], lifetime: 0, source: .expires),
            LifetimeRow(fields: [.expires: "0", .lastModified: at(-600)], lifetime: 0, source: .expires),
            LifetimeRow(fields: [.lastModified: at(-600)], lifetime: 60, source: .heuristic),
            LifetimeRow(fields: [.lastModified: at(600)], lifetime: 0, source: .none),
            LifetimeRow(fields: [.lastModified: at(-600)], status: 302, lifetime: 0, source: .none),
            LifetimeRow(fields: [.lastModified: at(-600)], status: 304, lifetime: 60, source: .heuristic),
            LifetimeRow(fields: [:], lifetime: 0, source: .none),
        ]
    )
    func lifetime(_ row: LifetimeRow) {
        let terms = terms(row.fields, status: row.status)
        #expect(terms.lifetime == .seconds(row.lifetime) && terms.source == row.source)
    }

    @Test func `the age is the larger one of Date and of Age with the delay (RFC 9111 §4.2.3)`() {
        #expect(terms([.age: "50"], delay: 5).age == .seconds(55))
        #expect(terms([.date: Self.at(-60), .age: "50"], delay: 5).age == .seconds(60))
        #expect(terms([.date: Self.at(60)]).age == .zero)
        #expect(terms([.age: "x"], delay: 3).age == .seconds(3))
        // A clock that was set back between request and response.
        #expect(terms([:], delay: -9).age == .zero)
    }

    @Test func `directives that restrict the use (RFC 9111 §5.2.2)`() {
        #expect(terms([.cacheControl: "no-cache"]).noCache)
        #expect(!terms([.cacheControl: "no-cache=\"Set-Cookie\""]).noCache)
        #expect(terms([.cacheControl: "must-revalidate"]).mustRevalidate)
        #expect(!terms([.cacheControl: "proxy-revalidate, s-maxage=1"]).mustRevalidate)
        let stale = terms([.cacheControl: "stale-while-revalidate=7, stale-if-error=8"])
        #expect(stale.staleWhileRevalidate == .seconds(7) && stale.staleIfError == .seconds(8))
        #expect(terms([:]).staleWhileRevalidate == .zero && terms([:]).staleIfError == nil)
    }

    @Test(
        "storing, RFC 9111 §3",
        arguments: [
            ("", 200, true), ("no-store", 200, false), ("no-store, must-understand", 200, true),
            ("no-store, must-understand", 299, false), ("", 299, false), ("max-age=1", 299, true),
            ("private", 302, true), ("", 302, false), ("", 103, false), ("", 304, true), ("no-store", 304, false),
        ]
    )
    func storing(directives: String, status: Int, mayStore: Bool) {
        #expect(terms([.cacheControl: directives], status: status).mayStore == mayStore)
    }

    @Test func `validators that are invalid do not count`() {
        func entry(_ fields: Fields) -> HTTPCacheEntry {
            HTTPCacheEntry(
                bodyID: "",
                bodyCount: 0,
                status: .ok,
                fields: fields,
                selectors: [],
                requestedAt: Self.now,
                receivedAt: Self.now
            )
        }
        let valid = entry([.etag: "W/\"1\"", .lastModified: Self.at(-5)])
        #expect(valid.entityTag?.description == "W/\"1\"" && valid.lastModified == Self.now - .seconds(5))
        let invalid = entry([.etag: "1", .lastModified: "yesterday", .date: "today"])
        #expect(invalid.entityTag == nil && invalid.lastModified == nil && invalid.date == Self.now)
    }
}

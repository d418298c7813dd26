import LarderTime
import TestSupport
import Testing

@testable import LarderHTTP

@Suite("Cache-Control, RFC 9111 §5.2", .oneMinute)
struct CacheControlTests {
    @Test func `names are case-insensitive, arguments are tokens or quoted strings, empty members are ignored`() {
        let terms = CacheControl(parsing: ["Max-AGE=60, , NO-store,", "stale-if-error=\"30\""])
        #expect(terms.maxAge == 60 && terms.noStore && terms.staleIfError == 30)
        #expect(terms.directives.map(\.name) == ["max-age", "no-store", "stale-if-error"])
    }

    @Test(arguments: [
        ("max-age=60", 60), ("max-age=\"60\"", 60), ("max-age=0060", 60), ("max-age=1, max-age=60", 1),
        ("max-age=60, max-age=1", 60), ("extension=\"max-age=3600\", max-age=1", 1),
        ("extension=\"a\\\"b, max-age=5\", max-age=1", 1), ("max-age=99999999999999999999999", 2_147_483_648),
        ("max-age=2147483649", 2_147_483_648),
        // An invalid number of seconds counts as 0.
        ("max-age", 0), ("max-age=", 0), ("max-age=-1", 0), ("max-age=1.5", 0), ("max-age='60'", 0), ("max-age=60a", 0),
        ("max-age =60", 0), ("max-age= 60", 0), ("max-age=６０", 0), ("max-age=\"60", 0), ("max-age=+60", 0),
    ])
    func `the first max-age counts, and an invalid one is 0`(text: String, seconds: Int64) {
        #expect(CacheControl(parsing: [text]).maxAge == seconds)
    }

    @Test func `a missing directive is absent, and a name inside another name does not match`() {
        let terms = CacheControl(parsing: ["s-maxage=60, x-no-store, no-stores"])
        #expect(terms.maxAge == nil && !terms.noStore && terms.noCache == .none && terms.maxStale == nil)
    }

    @Test(arguments: [
        ("no-cache", CacheControl.Scope.all), ("no-cache=\"Set-Cookie\"", .fields([.setCookie])),
        ("no-cache=\"Set-Cookie, ETag\"", .fields([.setCookie, .etag])), ("no-cache=Set-Cookie", .all),
        ("no-cache=\"\"", .all), ("no-cache=\"a b\"", .all), ("no-cache=\"ETag\", no-cache", .all),
        ("no-cache=\"ETag\", no-cache=\"Age\"", .fields([.etag, .age])), ("public", .none),
    ])
    func `no-cache applies to the whole response unless it names fields`(text: String, scope: CacheControl.Scope) {
        #expect(CacheControl(parsing: [text]).noCache == scope)
    }

    @Test func `an invalid request directive has its strictest meaning`() {
        let wishes = CacheControl(parsing: ["max-stale=a, min-fresh=a, max-age=a"])
        #expect(wishes.maxStale == nil && wishes.minFresh == DeltaSeconds.maximum && wishes.maxAge == 0)
        #expect(CacheControl(parsing: ["max-stale"]).maxStale == .any)
        #expect(CacheControl(parsing: ["max-stale=5"]).maxStale == .seconds(5))
    }

    @Test func `Pragma: no-cache applies only without Cache-Control`() {
        #expect(CacheControl(request: [.pragma: "no-cache"]).noCache == .all)
        #expect(CacheControl(request: [.pragma: "no-cache", .cacheControl: "max-age=1"]).noCache == .none)
        #expect(CacheControl(response: [.pragma: "no-cache"]).noCache == .none)
    }

    @Test func `a field of one megabyte is parsed in linear time`() {
        let long = String(repeating: "a,\"", count: 350_000)
        #expect(CacheControl(parsing: [long + ", max-age=1"]).directives.count > 100_000)
        #expect(CacheControl(parsing: [String(repeating: "x", count: 1 << 20)]).maxAge == nil)
    }
}

@Suite("Age, Retry-After, Vary", .oneMinute)
struct CachingFieldsTests {
    static let now = WallTime(seconds: 784_111_777)

    @Test(arguments: [
        ("7", 7), ("0", 0), ("7200,0", 7_200), ("0, 7200", 0), ("-1", 0), ("abc", 0), ("1.5", 0), ("", 0),
        ("99999999999999999999", 2_147_483_648), (" 7 ", 7),
    ])
    func `Age is a non-negative integer; an invalid value is 0`(text: String, seconds: Int64) {
        #expect(Age.seconds(in: [.age: text]) == seconds)
    }

    @Test func `the first of several Age lines is used`() {
        #expect(Age.seconds(in: [.age: "5", .age: "500"]) == 5)
        #expect(Age.seconds(in: Fields()) == 0)
    }

    @Test(arguments: [
        ("120", 120), (" 0 ", 0), ("Sun, 06 Nov 1994 08:50:37 GMT", 60), ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60), ("Sun, 06 Nov 1994 08:49:36 GMT", 0), ("99999999999999999", 2_147_483_648),
    ])
    func `Retry-After is seconds or a date, and the wait is never negative`(text: String, seconds: Int64) {
        #expect(RetryAfter.wait(text, from: Self.now) == .seconds(seconds))
    }

    @Test(arguments: ["", "soon", "-1", "1.5", "120 s"])
    func `an invalid Retry-After is ignored`(text: String) {
        #expect(RetryAfter.wait(text, from: Self.now) == nil)
    }

    @Test func `Vary is a set of names; an invalid name or a star anywhere counts as *`() {
        #expect(Vary([.vary: "Origin, accept", .vary: "ACCEPT,"]) == .fields([.accept, .origin]))
        #expect(Vary(Fields()) == .fields([]))
        for text in ["*", "Origin, *", "a b", "\"Origin\"", "Origin; q=1"] { #expect(Vary([.vary: text]) == .any) }
    }

    @Test func `equivalent spellings are normalised to one value, and a missing field differs from an empty one`()
        throws
    {
        let encoding = FieldName("Accept-Encoding")
        let language = FieldName("Accept-Language")
        func value(_ name: FieldName, _ lines: String...) -> String? {
            var fields = Fields()
            for line in lines { fields.add(name, line) }
            return Vary.normalized(name, in: fields)
        }
        #expect(value(encoding, "gzip, br ; q=0.5") == value(encoding, "BR;q=0.5", "gzip"))
        #expect(value(language, "de, EN") == value(language, "de,en"))
        #expect(value(language, "de, en") == value(language, "en, de"))
        #expect(value(language, "de, en;q=0.50") == value(language, "en ; Q=0.5", "de;q=1.0"))
        #expect(value(language, "de, en;q=0.5") != value(language, "en, de;q=0.5"))
        #expect(
            value(language, "de;q=x") != value(language, "de") && value(language, "de;q=2") != value(language, "de")
        )
        #expect(value(.accept, "text/HTML;Level=1, */*;q=0.1") == value(.accept, "*/*; q=0.100,text/html; level=1"))
        #expect(value(.accept, "text/html;level=A") != value(.accept, "text/html;level=a"))
        #expect(value(.accept, "text/html;q=0.5;a=1") != value(.accept, "text/html;a=1;q=0.5"))
        #expect(value(.userAgent, "a (b, c)") != value(.userAgent, "a (b,c)"))
        #expect(value(.authorization, "Bearer a") != value(.authorization, "bearer a"))
        #expect(value(.accept) == nil && value(.accept, "") == "")
        #expect(value(.cookie, "a=1", "b=2") == value(.cookie, "a=1, b=2"))
    }

    @Test func `space around the commas of an extension field has no meaning, except in quoted strings`() throws {
        let custom = FieldName("X-Test")
        func value(_ name: FieldName, _ lines: String...) -> String? {
            var fields = Fields()
            for line in lines { fields.add(name, line) }
            return Vary.normalized(name, in: fields)
        }
        #expect(value(custom, "1,2") == value(custom, " 1 ,\t2 ") && value(custom, "1,2") == value(custom, "1", "2"))
        #expect(value(custom, "1,2") != value(custom, "2,1") && value(custom, "1,2") != value(custom, "1,,2"))
        #expect(value(custom, "1 2") != value(custom, "12") && value(custom, "a") != value(custom, "A"))
        #expect(value(custom, "\"a, b\"") != value(custom, "\"a,b\""))
        // Fields with commas of their own are no lists.
        for name in [FieldName.userAgent, .cookie, .authorization, .ifModifiedSince] {
            #expect(value(name, "a, b") != value(name, "a,b"), "\(name)")
        }
        let referer = FieldName("Referer")
        #expect(value(referer, "http://a.test/?x=1, 2") != value(referer, "http://a.test/?x=1,2"))
    }
}

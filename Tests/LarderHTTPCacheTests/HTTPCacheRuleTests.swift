import LarderHTTP
import LarderHTTPCache
import LarderTime
import TestSupport
import Testing

@Suite("HTTP cache: rules for endpoints", .oneMinute)
struct HTTPCacheRuleTests {
    private func stage(_ origin: Origin, _ rule: HTTPCache.Rule) -> CacheStage {
        CacheStage(origin) { $0.rules = [rule] }
    }

    @Test(arguments: [
        ("/a", true), ("/a/b", true), ("/ab", false), ("/", false), ("/A", false),
    ])
    func `a rule reaches whole segments of the path`(path: String, isReached: Bool) async throws {
        var rule = HTTPCache.Rule(host: "Origin.test", pathPrefix: "/a", methods: [.get])
        rule.lifetime = .seconds(60)
        let stage = stage(Origin(reply([.cacheControl: "no-cache"])), rule)
        let url = "http://origin.test" + path
        _ = try await stage.get(url: url)
        #expect(try await stage.get(url: url).source == (isReached ? .hit : .network))
    }

    @Test func `a lifetime counts from the reply, stands against Age and Date, and not against no-store`() async throws
    {
        var rule = HTTPCache.Rule()
        rule.lifetime = .seconds(60)
        let old: Fields = [.cacheControl: "no-cache, max-age=0", .age: "999", .date: "Sun, 06 Nov 1994 08:49:37 GMT"]
        let forced = stage(Origin(reply(old)), rule)
        #expect(try await forced.get().fields[.cacheControl] == "max-age=60")
        forced.clock.advance(by: .seconds(59))
        #expect(try await forced.get().source == .hit)
        forced.clock.advance(by: .seconds(1))
        #expect(try await forced.get().source == .network)

        let secret = stage(Origin(reply([.cacheControl: "no-store"])), rule)
        _ = try await secret.get()
        #expect(try await secret.get().source == .network)

        let failing = stage(Origin(reply(Fields(), status: 500)), rule)
        _ = try await failing.get()
        #expect(try await failing.get().source == .network)
    }

    @Test func `a negative or absurd lifetime is none or the longest`() async throws {
        for (lifetime, source) in [
            (Duration.seconds(-5), HTTPCache.Response.Source.network), (.seconds(Int64.max), .hit),
        ] {
            var rule = HTTPCache.Rule()
            rule.lifetime = lifetime
            let stage = stage(Origin(reply()), rule)
            _ = try await stage.get()
            #expect(try await stage.get().source == source)
        }
    }

    @Test func `fields are set and removed before the cache looks`() async throws {
        var rule = HTTPCache.Rule()
        rule.removingFields = [.vary]
        rule.settingFields = [.cacheControl: "max-age=60"]
        let stage = stage(Origin(reply([.vary: "*", .cacheControl: "no-store"])), rule)
        #expect(try await stage.get().fields[.vary] == nil)
        #expect(try await stage.get().source == .hit)
    }

    @Test func `a rule can keep an endpoint out of the cache`() async throws {
        var rule = HTTPCache.Rule(pathPrefix: "/a")
        rule.settingFields = [.cacheControl: "no-store"]
        let stage = stage(Origin(reply([.cacheControl: "max-age=60"])), rule)
        _ = try await stage.get()
        #expect(try await stage.get().source == .network)
    }

    @Test func `a sign-in page of the network neither enters the cache nor pushes anything out`() async throws {
        var rule = HTTPCache.Rule()
        rule.contentTypes = ["application/json", "image/*"]
        let terms: Fields = [
            .cacheControl: "max-age=1, stale-if-error=60", .contentType: "application/json; charset=utf-8",
            .etag: "\"1\"",
        ]
        let stage = stage(Origin(reply(terms, "{}")), rule)
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(2))
        let page: Fields = [.contentType: "text/html", .cacheControl: "max-age=999999"]
        stage.origin.answer { _, _ in reply(page, "<html>Sign in</html>") }
        let kept = try await stage.get()
        #expect(kept.source == .stale(.unexpectedContent) && kept.text == "{}")
        // It is no reply of the server, so that staleness has no limit.
        stage.clock.advance(by: .seconds(100))
        #expect(try await stage.get().text == "{}")
        // Where nothing stands in, the caller sees what came, and it is not stored.
        #expect(try await stage.get(url: "http://origin.test/b").source == .network)
        #expect(try await stage.get(url: "http://origin.test/b").source == .network)
        // Nor does its head say anything about what is stored, which stands in for it.
        stage.origin.answer { _, _ in reply(page, "") }
        let head = try await stage.get(method: .head)
        #expect(head.source == .stale(.unexpectedContent) && head.fields[.contentType] == terms[.contentType])
        #expect(head.body.isEmpty)
        let unknown = try await stage.get(url: "http://origin.test/d", method: .head)
        #expect(unknown.fields[.contentType] == "text/html")
        stage.origin.answer { _, _ in reply(terms, "", status: 304) }
        #expect(try await stage.get().source == .revalidated)
        stage.origin.answer { _, _ in reply([.contentType: "image/png", .cacheControl: "max-age=60"]) }
        _ = try await stage.get(url: "http://origin.test/c")
        #expect(try await stage.get(url: "http://origin.test/c").source == .hit)
    }
}

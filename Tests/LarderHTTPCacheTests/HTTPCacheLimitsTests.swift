import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@Suite("HTTP cache: limits", .oneMinute)
struct HTTPCacheLimitsTests {
    @Test func `a response that expires in the year 9999 is fresh`() async throws {
        let stage = CacheStage(Origin(reply([.expires: "Fri, 31 Dec 9999 23:59:59 GMT"])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(10 * 365 * 86_400))
        #expect(try await stage.get().source == .hit)
    }

    @Test func `a 304 that makes a response match nothing any more removes it`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60", .etag: "\"1\""])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(60))
        stage.origin.answer { _, _ in reply([.etag: "\"1\"", .vary: "*"], "", status: 304) }
        #expect(try await stage.get().source == .revalidated)
        stage.origin.answer { _, _ in reply([.cacheControl: "max-age=60"], "new") }
        #expect(try await stage.get().text == "new")
        #expect(stage.origin.requests.last?.fields[.ifNoneMatch] == nil)
    }

    @Test func `rules reach the streamed replies to changes too`() async throws {
        var rule = HTTPCache.Rule(methods: [.post])
        rule.settingFields = [.location: "/b"]
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60"]))) { $0.rules = [rule] }
        _ = try await stage.get(url: "http://origin.test/b")
        let request = TransportRequest(method: .post, url: CacheStage.url)
        #expect(try await stage.cache.open(request).fields[.location] == "/b")
        // What the rewritten field names is invalid now.
        #expect(try await stage.get(url: "http://origin.test/b").source == .network)
    }
}

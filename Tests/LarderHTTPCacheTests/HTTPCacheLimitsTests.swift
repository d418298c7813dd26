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

    @Test func `a strong tag confirms no response with a weak one`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60", .etag: "W/\"1\""])))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(60))
        stage.origin.answer { request, _ in
            let isAsked = request.fields.contains(.ifNoneMatch)
            return reply([.etag: "\"1\""], isAsked ? "" : "exact", status: isAsked ? 304 : 200)
        }
        #expect(try await stage.get().text == "exact")
    }

    @Test func `a 304 keeps a response that must be understood and no other cache may store`() async throws {
        let terms: Fields = [.cacheControl: "max-age=60, must-understand, no-store", .etag: "\"1\""]
        let stage = CacheStage(Origin(reply(terms)))
        _ = try await stage.get()
        stage.clock.advance(by: .seconds(60))
        stage.origin.answer { _, _ in reply(terms, "", status: 304) }
        #expect(try await stage.get().source == .revalidated)
        #expect(try await stage.get().source == .hit)
    }

    @Test func `a variant beyond the budget removes no other`() async throws {
        let stage = CacheStage(Origin(), storage: DiskHTTPCacheStorage(inMemory: 1 << 20))
        stage.origin.answer { request, _ in
            let isLarge = request.fields[.acceptLanguage] == "de"
            return reply(
                [.cacheControl: "max-age=60", .vary: "Accept-Language"],
                isLarge ? String(repeating: "x", count: 2 << 20) : "en"
            )
        }
        _ = try await stage.get([.acceptLanguage: "en"])
        _ = try await stage.get([.acceptLanguage: "de"])
        #expect(try await stage.get([.acceptLanguage: "de"]).source == .network)
        #expect(try await stage.get([.acceptLanguage: "en"]).source == .hit)
    }

    @Test func `fields are corrected before the cache looks, also those of streams`() async throws {
        let stage = CacheStage(Origin(reply([.vary: "*", .cacheControl: "no-store"]))) {
            $0.correctFields = { fields, url in
                guard url.hasSuffix("/b") else { return }
                fields.remove(.vary)
                fields.set(.cacheControl, "max-age=60")
            }
        }
        for (url, source) in [(CacheStage.url, HTTPCache.Response.Source.network), ("http://origin.test/b", .hit)] {
            _ = try await stage.cache.open(TransportRequest(url: url)).whole()
            let again = try await stage.get(url: url)
            #expect(again.source == source && (again.fields[.vary] == nil) == (source == .hit))
        }
    }

    @Test func `the fields of streamed replies to changes are corrected too`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60"]))) {
            $0.correctFields = { fields, url in if url == CacheStage.url { fields.set(.location, "/b") } }
        }
        _ = try await stage.get(url: "http://origin.test/b")
        let request = TransportRequest(method: .post, url: CacheStage.url)
        #expect(try await stage.cache.open(request).fields[.location] == "/b")
        // What the corrected field names is invalid now.
        #expect(try await stage.get(url: "http://origin.test/b").source == .network)
    }
}

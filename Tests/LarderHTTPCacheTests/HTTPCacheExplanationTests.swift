import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import TestSupport
import Testing

@Suite("HTTP cache: explanations", .oneMinute)
struct HTTPCacheExplanationTests {
    @Test func `every decision is a sentence with its figures and its section`() async throws {
        let stage = CacheStage(Origin())
        stage.origin.answer { _, _ in
            reply([.cacheControl: "max-age=60, stale-while-revalidate=30, stale-if-error=600", .etag: "\"1\""])
        }
        let first = try await stage.get()
        #expect(
            first.explanation
                == "Nothing is stored for this URL (RFC 9111 §4). Stored: fresh for 60 s by max-age (RFC 9111 §3, §4.2.1)."
        )
        stage.clock.advance(by: .seconds(12))
        #expect(try await stage.get().explanation == "Fresh: 12 s old of 60 s by max-age (RFC 9111 §4.2).")
        #expect(
            try await stage.get([.cacheControl: "max-age=5"]).explanation.hasPrefix(
                "It is 12 s old and the request takes 5 s (RFC 9111 §5.2.1.1); the server is asked (RFC 9111 §4.3)."
            )
        )
        stage.clock.advance(by: .seconds(70))
        #expect(
            try await stage.get().explanation == "Stale for 10 s of the 30 s of stale-while-revalidate (RFC 5861 §3)."
        )
        await stage.cache.finishBackgroundWork()
        stage.clock.advance(by: .seconds(200))
        stage.origin.answer { _, _ in reply(Fields(), status: 502) }
        let failed = try await stage.get()
        #expect(
            failed.explanation
                == "The server answered 502. Stale for 140 s of 600 s that an error allows (RFC 5861 §4)."
        )
        #expect(failed.fields[.age] == "200")
        await stage.cache.invalidate(url: CacheStage.url)
        #expect(
            try await stage.get([.cacheControl: "only-if-cached"]).explanation
                == "A change at its URL made it invalid (RFC 9111 §4.4), and the request says only-if-cached "
                + "(RFC 9111 §5.2.1.7)."
        )
    }

    @Test func `the cache is a transport, and caches can stand behind one another`() async throws {
        let stage = CacheStage(Origin(reply([.cacheControl: "max-age=60"])))
        let outer = HTTPCache(
            stage.cache,
            HTTPCache.Configuration(storage: DiskHTTPCacheStorage(inMemory: 16 << 20), clock: stage.clock)
        )
        let transport: any Transport = outer
        stage.clock.advance(by: .seconds(1))
        _ = try await transport.send(TransportRequest(url: CacheStage.url))
        stage.clock.advance(by: .seconds(10))
        await outer.removeAll()
        // What the inner one gives says how old it is, and the outer one goes on from there.
        _ = try await transport.send(TransportRequest(url: CacheStage.url))
        stage.clock.advance(by: .seconds(5))
        let response = try await outer.response(for: TransportRequest(url: CacheStage.url))
        #expect(response.source == .hit && response.fields[.age] == "15")
        #expect(stage.origin.count == 1)
    }
}

import LarderHTTP
import LarderHTTPCache
import LarderTime
import LarderTransport
import TestSupport
import Testing

/// Stale responses when there is no reply, RFC 9111 §4.2.4.
@Suite("HTTP cache: stale without a reply", .oneMinute)
struct HTTPCacheStaleTests {
    private func stage(
        _ terms: String,
        _ request: Fields = Fields(),
        change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> CacheStage {
        let stage = CacheStage(Origin(reply([.cacheControl: terms, .etag: "\"1\""])), change)
        _ = try await stage.get(request)
        stage.clock.advance(by: .seconds(1_000_000))
        return stage
    }

    private func fail(_ stage: CacheStage, _ code: ErrorCode<TransportError>) {
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(code, "down") }
    }

    @Test(
        arguments: [ErrorCode<TransportError>.unreachable, .interrupted, .timedOut, .untrusted, .proxyRejected],
        [false, true]
    )
    func `without a reply a stored response stands in, visibly stale`(
        code: ErrorCode<TransportError>,
        streams: Bool
    ) async throws {
        for terms in ["max-age=60", "max-age=60, proxy-revalidate, s-maxage=1", "max-age=60, stale-if-error=1"] {
            let stage = try await stage(terms)
            fail(stage, code)
            if streams {
                let stream = try await stage.cache.open(TransportRequest(url: CacheStage.url))
                #expect(stream.fields[.age] == "1000000")
                #expect(try await stream.whole().body == Array("content".utf8))
            } else {
                let response = try await stage.get()
                #expect(response.source == .stale(.transportFailed(code)) && response.fields[.age] == "1000000")
                #expect(response.explanation.hasSuffix("there is no reply (RFC 9111 §4.2.4)."))
            }
        }
    }

    @Test func `a stored response stands in although the clock shows a time before it came`() async throws {
        let stage = try await stage("max-age=60")
        fail(stage, .unreachable)
        stage.clock.set(wall: stage.clock.now - .seconds(2_000_000))
        let response = try await stage.get()
        #expect(response.source == .stale(.transportFailed(.unreachable)))
        #expect(response.explanation.contains("not known"))
        await #expect(throws: TransportError.self) { try await stage.get([.cacheControl: "max-stale=60"]) }
    }

    @Test func `not if the cache was turned off while the request was in flight`() async throws {
        let stage = try await stage("max-age=60")
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.timedOut, "late") }
        stage.origin.hold()
        let count = stage.origin.count
        let read = Task { try await stage.get() }
        await stage.origin.waitForRequests(count + 1)
        stage.cache.abandonExchanges()
        stage.origin.release()
        await #expect { try await read.value } throws: { ($0 as? TransportError)?.code == .timedOut }
    }

    @Test func `not if it was invalidated while the request was in flight`() async throws {
        let stage = try await stage("max-age=60")
        let cache = stage.cache
        stage.origin.answer { _, _ throws(TransportError) in throw TransportError(.timedOut, "late") }
        stage.origin.hold()
        let count = stage.origin.count
        let read = Task { try await stage.get() }
        await stage.origin.waitForRequests(count + 1)
        await cache.invalidate(url: CacheStage.url)
        stage.origin.release()
        await #expect { try await read.value } throws: { ($0 as? TransportError)?.code == .timedOut }
    }

    @Test(arguments: ["max-age=60, must-revalidate", "no-cache", "max-age=60, no-cache"])
    func `not if the server forbade it`(terms: String) async throws {
        let stage = try await stage(terms)
        fail(stage, .unreachable)
        await #expect { try await stage.get() } throws: { ($0 as? TransportError)?.code == .unreachable }
    }

    @Test(arguments: [
        ("no-cache", false), ("no-store", false), ("max-age=0", false), ("max-age=9999999", false),
        ("min-fresh=1", false),
        ("max-age=9999999, max-stale=999999", true), ("max-stale=10", false), ("stale-if-error=9999999", true),
    ])
    func `a request decides how old it may be`(wish: String, isServed: Bool) async throws {
        let stage = try await stage("max-age=60")
        fail(stage, .timedOut)
        do {
            #expect(try await stage.get([.cacheControl: wish]).status == .ok)
            #expect(isServed)
        } catch { #expect(!isServed) }
    }

    @Test(arguments: [ErrorCode<TransportError>.cancelled, .tooLarge, .unsupportedCoding, .invalidRequest])
    func `other failures are thrown`(code: ErrorCode<TransportError>) async throws {
        let stage = try await stage("max-age=60")
        fail(stage, code)
        await #expect { try await stage.get() } throws: { ($0 as? TransportError)?.code == code }
    }

    @Test func `a reply with an error is a reply, unless stale-if-error says otherwise`() async throws {
        let stage = try await stage("max-age=60")
        stage.origin.answer { _, _ in reply(Fields(), "sorry", status: 503) }
        #expect(try await stage.get().status == .serviceUnavailable)
    }

    @Test func `what a change made invalid does not stand in`() async throws {
        let stage = try await stage("max-age=60")
        _ = try await stage.get(method: .post)
        fail(stage, .unreachable)
        await #expect(throws: TransportError.self) { try await stage.get() }
    }

    @Test func `it can be turned off`() async throws {
        let stage = try await stage("max-age=60") { $0.policy.servesStaleWithoutReply = false }
        fail(stage, .unreachable)
        await #expect(throws: TransportError.self) { try await stage.get() }
        let offline = try await self.stage("max-age=60") { configuration in
            configuration.policy.servesStaleWithoutReply = false
            let asked = Flag()
            configuration.isOffline = {
                defer { asked.set(true) }
                return asked.value
            }
        }
        await #expect(throws: TransportError.self) { try await offline.get() }
    }
}

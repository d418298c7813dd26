import LarderHTTP
import LarderHTTPCache
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

/// A transport that follows redirects by itself, as the product's own do.
private struct FollowingTransport: Transport {
    let base: ScriptedTransport

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try await open(request).whole()
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try await Redirection.follow(request) { (hop) async throws(TransportError) in try await base.open(hop) }
    }
}

@Suite("The HTTP cache over a transport that follows redirects", .oneMinute)
struct HTTPCacheRedirectTests {
    private static let first = "http://origin.test/latest"

    /// A cache before a server that redirects to a page that may be stored for an hour.
    private func cache(_ redirection: Fields) -> (HTTPCache, ScriptedTransport) {
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let transport = ScriptedTransport { request, number throws(TransportError) in
            if request.url == Self.first {
                var fields = redirection
                fields.set(.location, "/pages/\(number)")
                return .text("", status: Status(code: 302), fields: fields)
            }
            if request.fields.contains(.ifNoneMatch) {
                return .text("", status: .notModified, fields: [.etag: "\"1\""])
            }
            return .text(request.url, fields: [.cacheControl: "max-age=3600", .etag: "\"1\""])
        }
        let configuration = HTTPCache.Configuration(storage: MemoryHTTPCacheStorage(), clock: clock)
        return (HTTPCache(FollowingTransport(base: transport), configuration), transport)
    }

    @Test(arguments: [[.cacheControl: "no-store"], Fields()], [false, true])
    func `a response that came by a redirect is not stored under the first URL`(
        redirection: Fields,
        streams: Bool
    ) async throws {
        let (cache, transport) = cache(redirection)
        func get() async throws -> String {
            let request = TransportRequest(url: Self.first)
            let response = streams ? try await cache.open(request).whole() : try await cache.send(request)
            return String(decoding: response.body, as: UTF8.self)
        }
        #expect(try await get() == "http://origin.test/pages/1")
        #expect(try await get() == "http://origin.test/pages/3")
        #expect(transport.requests.count == 4)
        #expect(transport.requests.allSatisfy { !$0.fields.contains(.ifNoneMatch) })
    }

    @Test func `the target itself is stored under its own URL`() async throws {
        let (cache, transport) = cache(Fields())
        let target = TransportRequest(url: "http://origin.test/pages/1")
        _ = try await cache.send(target)
        _ = try await cache.send(target)
        #expect(transport.requests.count == 1)
    }

    @Test(arguments: [false, true])
    func `a 304 that came by a redirect confirms nothing that is stored under the first URL`(
        streams: Bool
    ) async throws {
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let moved = Flag()
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            if request.url == Self.first, moved.value {
                return .text("", status: Status(code: 302), fields: [.location: "/moved"])
            }
            if request.fields.contains(.ifNoneMatch) {
                return .text("", status: .notModified, fields: [.etag: "\"1\""])
            }
            return .text(request.url, fields: [.cacheControl: "max-age=60", .etag: "\"1\""])
        }
        let configuration = HTTPCache.Configuration(storage: MemoryHTTPCacheStorage(), clock: clock)
        let cache = HTTPCache(FollowingTransport(base: transport), configuration)
        let request = TransportRequest(url: Self.first)
        _ = try await cache.send(request)
        moved.set(true)
        clock.advance(by: .seconds(61))
        let response = streams ? try await cache.open(request).whole() : try await cache.send(request)
        #expect(String(decoding: response.body, as: UTF8.self) == "http://origin.test/moved")
    }
}

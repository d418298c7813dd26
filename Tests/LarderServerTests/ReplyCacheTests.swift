import LarderCoding
import LarderHTTP
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderEngine
@testable import LarderServer

@Suite("Reply cache", .oneMinute)
struct ReplyCacheTests {
    /// Whether the reply to a request is cached.
    private func isCached(_ backend: MockBackend, _ target: String, as handle: String?) throws -> Bool {
        let world = backend.main.world
        let credentials = handle.map { [(name: "Authorization", value: "Bearer dev-" + $0)] } ?? []
        let request = try Request(.get, target, [(name: "Host", value: "test")] + credentials)
        return ResponseCache.Version(request, WorldExchange(world)).flatMap { world.cache.find($0) } != nil
    }

    @Test func `a reply that depends on no credentials is cached once for everybody`() async throws {
        let scene = try Scene()
        _ = try await scene.ask("GET", "/v1/profiles/user_1", as: "ana")
        _ = try await scene.ask("GET", "/v1/feed", as: "ana")
        for handle in ["ana", "person2", nil] {
            #expect(try isCached(scene.backend, "/v1/profiles/user_1", as: handle))
            #expect(try isCached(scene.backend, "/v1/feed", as: handle) == (handle == "ana"))
        }
    }

    @Test func `a reply of the API is cached also where a custom route takes the path and passes the request on`()
        async throws
    {
        var size = WorldSize()
        size.people = 2
        size.posts = 2
        let route = #"{"path": "/v1/feed", "when": {"query.own": "1"}, "json": {"own": true}}"#
        let site = try RouteSite(routes: route, .generated(size, picturesFrom: nil))
        #expect(try await site.ask("GET", "/v1/feed").json["items"]?.array?.count == 2)
        #expect(try await site.text("GET", "/v1/feed?own=1") == #"{"own":true}"#)
        #expect(try isCached(site.backend, "/v1/feed", as: nil))
        #expect(try !isCached(site.backend, "/v1/feed?own=1", as: nil))
        #expect(try await site.ask("GET", "/v1/feed").json["items"]?.array?.count == 2)
    }
}

import Foundation
import Larder
import LarderHTTP
import LarderHTTPCache
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import TestSupport
import Testing

@testable import LarderDemo

@Suite("HTTP cache, end to end", .oneMinute)
struct HTTPCacheTests {
    /// A backend with a frozen clock, and a cache with the same clock.
    private struct Stage {
        let backend: MockBackend
        let world: MockWorld
        let cache: HTTPCache
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))
        let directory: String

        init() throws {
            backend = try MockBackend.startSmall()
            world = backend.main
            world.clock.freeze(at: clock.now)
            directory =
                FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
            let disk = try DiskStore(DiskStore.Configuration(directory: directory, clock: clock))
            let storage = DiskHTTPCacheStorage(disk)
            cache = HTTPCache(
                SocketTransport(clock: ManualClock()),
                HTTPCache.Configuration(storage: storage, clock: clock)
            )
        }

        func pass(_ seconds: Int64) {
            clock.advance(by: .seconds(seconds))
            world.clock.advance(by: .seconds(seconds))
        }

        func ask(
            _ method: LarderHTTP.Method,
            _ path: String,
            _ fields: Fields = Fields(),
            _ body: String = "",
            as handle: String = "ana"
        ) async throws -> HTTPCache.Response {
            var fields = fields
            fields.add(.authorization, "Bearer dev-\(handle)")
            if !body.isEmpty { fields.add(.contentType, "application/json") }
            return try await cache.response(
                for: TransportRequest(method: method, url: backend.url + path, fields: fields, body: Array(body.utf8))
            )
        }

        func end() async {
            await cache.finishBackgroundWork()
            #expect(await backend.activity() == [])
            await backend.stop()
            try? FileManager.default.removeItem(atPath: directory)
        }
    }

    @Test func `a response is fresh, stale while revalidated, and renewed by a 304`() async throws {
        let stage = try Stage()
        let first = try await stage.ask(.get, "/v1/feed?limit=5")
        #expect(first.source == .network && first.entry != nil)
        stage.pass(59)
        #expect(try await stage.ask(.get, "/v1/feed?limit=5").source == .hit)
        #expect(await stage.world.journal(JournalFilter("GET", "/v1/feed")).count == 1)
        stage.pass(60)
        let stale = try await stage.ask(.get, "/v1/feed?limit=5")
        #expect(stale.source == .stale(.revalidating) && stale.body == first.body)
        await stage.cache.finishBackgroundWork()
        #expect(await stage.world.journal(JournalFilter("GET", "/v1/feed")).map(\.status) == [200, 304])
        let renewed = try await stage.ask(.get, "/v1/feed?limit=5")
        #expect(renewed.source == .hit && renewed.fields[.age] == "0")
        #expect(renewed.entry?.fetchedAt == first.entry?.fetchedAt)
        await stage.end()
    }

    @Test func `an edit invalidates, and the next read returns the new version`() async throws {
        let stage = try Stage()
        let before = try await stage.ask(.get, "/v1/profiles/user_1")
        let tag = try #require(before.fields[.etag])
        let edit = try await stage.ask(.patch, "/v1/profiles/user_1", [.ifMatch: tag], #"{"bio":"edited"}"#)
        #expect(edit.status == .ok)
        let after = try await stage.ask(.get, "/v1/profiles/user_1")
        #expect(after.source == .network && String(decoding: after.body, as: UTF8.self).contains("edited"))
        #expect(try await stage.ask(.get, "/v1/profiles/user_1").source == .hit)
        await stage.end()
    }

    @Test func `stored responses stand in for failures of the server and for missing replies`() async throws {
        let stage = try Stage()
        let first = try await stage.ask(.get, "/v1/feed")
        let profile = try await stage.ask(.get, "/v1/profiles/user_1")
        stage.pass(1_000)
        try stage.world.set(
            Fault(id: "feed", .reset, when: FaultMatch("GET", "/v1/feed"), stage: .head, at: 9)
        )
        let kept = try await stage.ask(.get, "/v1/feed")
        #expect(kept.source == .stale(.transportFailed(.interrupted)) && kept.body == first.body)
        #expect(await stage.backend.activity() == [])
        await stage.backend.stop()
        let gone = try await stage.ask(.get, "/v1/feed")
        #expect(gone.source == .stale(.transportFailed(.unreachable)) && gone.body == first.body)
        // A profile has no stale-if-error: it stands in because there is no reply, but not for a refresh.
        #expect(profile.fields[.cacheControl] == "private, max-age=300")
        let old = try await stage.ask(.get, "/v1/profiles/user_1")
        #expect(old.source == .stale(.transportFailed(.unreachable)) && old.body == profile.body)
        await #expect(throws: TransportError.self) {
            try await stage.ask(.get, "/v1/profiles/user_1", [.cacheControl: "no-cache"])
        }
        await stage.end()
    }

    @Test func `balances are fetched each time, and responses are not shared between accounts`() async throws {
        let stage = try Stage()
        let first = try await stage.ask(.get, "/v1/accounts")
        let second = try await stage.ask(.get, "/v1/accounts")
        #expect(first.source == .network && second.source == .revalidated && second.body == first.body)
        let other = try await stage.ask(.get, "/v1/accounts", as: "person3")
        #expect(other.source == .network && other.body != first.body)
        await stage.end()
    }
}

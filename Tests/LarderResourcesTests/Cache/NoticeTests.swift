import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Notices about snapshots", .oneMinute)
struct NoticeTests {
    private let now = WallTime(seconds: 1_790_000_000)

    private func notice(
        _ freshness: Freshness,
        age: Duration? = nil,
        isFetching: Bool = false,
        isOffline: Bool = false
    ) -> Freshness.Notice {
        Freshness.Notice(
            freshness,
            validatedAt: age.map { now - $0 },
            isFetching: isFetching,
            isOffline: isOffline,
            at: now
        )
    }

    @Test func `a notice depends on freshness, age and the network`() {
        #expect(notice(.missing).text == "Not loaded")
        #expect(notice(.missing, isFetching: true).text == "Loading…")
        #expect(notice(.missing, isOffline: true) == .offline(nil))
        #expect(notice(.fresh, age: .seconds(150)).text == "Updated 2 min ago")
        // A fresh value needs no network.
        #expect(notice(.fresh, age: .seconds(1), isOffline: true).text == "Updated just now")
        #expect(notice(.stale(.expired), age: .seconds(7_300)).text == "May be outdated, updated 2 h ago")
        #expect(notice(.stale(.expired), age: .seconds(200_000), isOffline: true).text == "Offline, updated 2 d ago")
        #expect(notice(.stale(.clockUncertain), age: .seconds(5)).text == "May be outdated")
        #expect(notice(.stale(.clockUncertain), age: .seconds(-7_200)).text == "May be outdated")
        // The server's clock is ahead.
        #expect(notice(.fresh, age: .seconds(-40)) == .updated(.zero))
    }

    @Test func `one notice goes from updated over outdated and offline back to updated`() async throws {
        let scene = CacheScene()
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let resource = Resource<Note>.entity("n", freshness: .timeToLive(.seconds(60)), policy: .staleWhileRevalidate) {
            try await source.fetch($0)
        }
        let seen = SequenceRecorder(cache.snapshots(resource))
        func text() -> String? { seen.elements.last?.notice(at: scene.clock.now).text }
        await source.waitForRequests(1)
        source.answer(0, .value(Note(id: "n", text: "1")))
        await seen.wait { $0.last?.freshness == .fresh && $0.last?.isFetching == false }
        #expect(text() == "Updated just now")
        scene.clock.advance(by: .seconds(30))
        #expect(text() == "Updated 30 s ago")
        scene.clock.advance(by: .seconds(30))
        await seen.wait { $0.last?.freshness == .stale(.expired) }
        #expect(text() == "May be outdated, updated 1 min ago")
        scene.isOnline.withLock { $0 = false }
        scene.clock.advance(by: .seconds(60))
        let offline = try await cache.snapshot(resource, .networkFirst(timeout: nil))
        #expect(offline.notice(at: scene.clock.now).text == "Offline, updated 2 min ago")
        scene.isOnline.withLock { $0 = true }
        let count = source.requests.count
        async let refreshed = cache.refresh(resource)
        await source.waitForRequests(count + 1)
        source.answer(count, .value(Note(id: "n", text: "2")))
        _ = try await refreshed
        await seen.wait { $0.last?.value?.text == "2" && $0.last?.isFetching == false }
        #expect(text() == "Updated just now")
    }

    @Test func `a snapshot of something that was created here says so`() async throws {
        let scene = CacheScene()
        scene.isOnline.withLock { $0 = false }
        let cache = try scene.cache()
        let note = Resource<Note>.entity("n") { _ in .gone }
        var operation = WriteBehind<String, Note>(
            "create",
            scope: { $0 },
            changes: { id, changes in changes.create(Note(id: id, text: "new")) },
            send: { _ in [] }
        )
        operation.acknowledge = { _, note, update in update.put(note) }
        cache.outbox.register(operation)
        try cache.enqueue("n", operation)
        #expect(cache.stored(note)?.notice(at: scene.clock.now) == .unconfirmed)
        let failing = Resource<Note>.entity("other") { _ in throw LarderError(.offline, "no route") }
        let snapshots = cache.snapshots(failing)
        for await snapshot in snapshots where snapshot.refreshError != nil {
            #expect(snapshot.notice(at: scene.clock.now).text == "Offline")
            break
        }
    }
}

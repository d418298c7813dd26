import Foundation
import LarderMemory
import LarderSQLite
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Cache: values that must not be on the disk", .oneMinute)
struct MemoryOnlyTests {
    enum Reason: String, CaseIterable, Sendable { case noStore, memoryRetention }

    private let scene = CacheScene()

    private func list(_ name: String, _ notes: [Note], _ reason: Reason? = nil) -> Resource<EntityList<Note>> {
        var list = Resource<EntityList<Note>>.list(name, of: Note.self, freshness: .timeToLive(.seconds(60))) { _ in
            var reply = Fetched.value(EntityList(notes))
            reply.mayStore = reason != .noStore
            return reply
        }
        if reason == .memoryRetention { list.isMemoryOnly = true }
        return list
    }

    private func texts(_ cache: LarderCache, _ list: Resource<EntityList<Note>>) -> [String]? {
        cache.stored(list)?.value?.items.map(\.text)
    }

    /// The files of the store that contain a text.
    private func files(with text: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: scene.path).filter { name in
            FileManager.default.contents(atPath: scene.path + "/" + name)?.range(of: Data(text.utf8)) != nil
        }
    }

    @Test(arguments: Reason.allCases, [false, true])
    func `an older row is not read after a newer value that is in memory only`(_ reason: Reason, _ isRestarted: Bool)
        async throws
    {
        let cache = try scene.cache()
        let stored = list("stored", [Note(1, "old")])
        _ = try await cache.value(stored)
        _ = try await cache.value(list("kept off", [Note(1, "new", revision: 2)], reason))
        #expect(texts(cache, stored) == ["new"])
        // A change feed brings what memory has already: it may be stored.
        try await cache.update { update in
            update.put(Note(1, "new", revision: 2))
            update.setToken("2", for: "feed")
        }
        cache.trimMemory(toBytes: 0)
        let reader = isRestarted ? try scene.cache() : cache
        #expect(texts(reader, stored) == ["new"])
    }

    @Test func `a decoded value whose row in memory is gone is not written to the disk by a change`() async throws {
        let cache = try scene.cache()
        try await cache.update { $0.put(Secret(id: "1", text: "code")) }
        try cache.core.memoryRows.trim(toCost: 0)
        try await cache.update { $0.modify(Secret.self, "1") { $0.text = "changed" } }
        #expect(cache.stored(Resource<Secret>.entity("1") { _ in .gone })?.value?.text == "changed")
        #expect(try cache.disk?.entity(EntityKey(type: "secret", id: "1")) == nil)
    }

    @Test func `a decoded value without a row is invalidated by the beginning of its type`() async throws {
        let cache = try scene.cache()
        try await cache.update { $0.put(Secret(id: "1", text: "code")) }
        try cache.core.memoryRows.trim(toCost: 0)
        let secret = Resource<Secret>.entity("1") { _ in .gone }
        try await cache.invalidate(startingWith: "sec")
        #expect(cache.stored(secret)?.freshness == .stale(.invalidated))
    }

    @Test func `what an update puts for a list that is kept off the disk is kept off it too`() async throws {
        let cache = try scene.cache()
        _ = try await cache.value(list("notes", [Note(1, "a")], .memoryRetention))
        try await cache.update { try $0.put(EntityList([Note(2, "b")]), for: list("notes", [])) }
        #expect(texts(cache, list("notes", [])) == ["b"])
        #expect(try cache.disk?.entity(Note.key("2")) == nil)
    }

    private struct Secret: CacheEntity {
        static let entityType = "secret"
        static var isMemoryOnly: Bool { true }
        var id: String
        var text = ""
    }

    @Test func `a read of a row in memory does not wait for a commit that waits for the disk`() throws {
        var configuration = scene.configuration()
        configuration.editStore { $0.busyTimeout = .seconds(50) }
        let cache = try LarderCache(configuration)
        try cache.updateBlocking { $0.put(Secret(id: "1")) }
        let core = cache.core
        core.entities.trim(cost: 0)
        let other = try Database(.file(scene.path + "/store.sqlite"))
        try other.execute("BEGIN IMMEDIATE")
        let hasEnded = Mutex(false)
        let change = Thread {
            try? cache.updateBlocking { $0.put(Note(2, "b")) }
            hasEnded.withLock { $0 = true }
        }
        change.start()
        while core.commits.thread.withLock({ $0 == nil }) { sched_yield() }
        let secret = Resource<Secret>.entity("1") { _ in throw Broken() }
        #expect(cache.stored(secret)?.value?.id == "1" && hasEnded.withLock { !$0 })
        try other.execute("ROLLBACK")
        while !hasEnded.withLock({ $0 }) { sched_yield() }
        #expect(try core.disk?.entity(Note.key("2")) != nil)
    }

    @Test func `a row in memory has no age after the clock was set back, also when it is decoded again`() async throws {
        let cache = try scene.cache()
        var note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { _ in .value(Note(1, "a")) }
        note.isMemoryOnly = true
        _ = try await cache.value(note)
        scene.clock.set(wall: scene.clock.now - .seconds(3_600))
        _ = cache.stored(note)
        // The row stays.
        cache.core.entities.trim(cost: 0)
        for node in cache.core.nodes.all { node.forgetUnobserved() }
        #expect(cache.stored(note)?.freshness.isFresh == false)
    }

    @Test func `an equal value of another list that must not be stored leaves the row`() async throws {
        let cache = try scene.cache()
        let stored = list("stored", [Note(1, "same")])
        _ = try await cache.value(stored)
        _ = try await cache.value(list("kept off", [Note(1, "same")], .noStore))
        #expect(texts(try scene.cache(), stored) == ["same"])
        // Another change is stored as before.
        try await cache.update { $0.modify(Note.self, "1") { $0.text = "changed" } }
        #expect(texts(try scene.cache(), stored) == ["changed"])
    }

    @Test func `a "gone" that must not be stored removes the row`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let note = Resource<Note>.entity("1") { try await source.fetch($0) }
        var gone = Fetched<Note>.gone
        gone.mayStore = false
        source.prepare(.value(Note(1)), gone)
        _ = try await cache.value(note)
        await #expect(throws: LarderError.self) { try await cache.refresh(note) }
        cache.trimMemory(toBytes: 0)
        #expect(cache.stored(note) == nil)
        #expect(try scene.cache().stored(note) == nil)
    }

    @Test(arguments: [false, true])
    func `a timeline with a page that must not be stored leaves the disk`(_ isNotModified: Bool) async throws {
        let cache = try scene.cache()
        let source = PageSource()
        let feed = source.resource(pageSize: 2)
        let timeline = cache.timeline(feed, .cacheOnly)
        source.prepare([4, 3], next: "after 3")
        try await timeline.refresh()
        var page = Fetched.value(EntityList([Note(2, "secret-text"), Note(1, "secret-text")]), validator: "v")
        page.mayStore = isNotModified
        source.script.prepare(page)
        try await timeline.loadOlder()
        if isNotModified {
            var confirmed = Fetched<EntityList<Note>>.notModified()
            confirmed.mayStore = false
            source.script.prepare(confirmed)
            scene.clock.advance(by: .seconds(1))
            try await timeline.refresh(around: ["2"], isUserInitiated: true)
            #expect(source.requests.last?.validator == "v")
        }
        // What was allowed on the disk before may still be in its log.
        if !isNotModified { #expect(try files(with: "secret-text") == []) }
        // What comes later is in memory only: an older list must not be left.
        try await cache.update { $0.insertNewest(Note(5), in: feed.key) }
        #expect(try await cache.line(feed) == "5 4 3 2 1 .")
        #expect(try await scene.cache().line(feed) == "–")
    }

    @Test func `an event does not put a timeline on the disk that must not be there and whose row memory has evicted`()
        async throws
    {
        let cache = try scene.cache()
        let source = PageSource()
        let feed = source.resource(pageSize: 2)
        var page = Fetched.value(EntityList([Note(2), Note(1)]))
        page.mayStore = false
        source.script.prepare(page)
        try await cache.timeline(feed, .cacheOnly).refresh()
        try cache.core.memoryRows.trim(toCost: 0)
        try await cache.update { $0.insertNewest(Note(3), in: feed.key) }
        #expect(try await cache.line(feed) == "3 2 1 .")
        #expect(try cache.disk?.query(feed.key) == nil)
    }

    @Test
    func `a list that must not be on the disk and whose row memory has evicted is not put there when it is confirmed`()
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes", of: Note.self) { try await source.fetch($0) }
        var reply = Fetched.value(EntityList([Note(1, "kept off")]), validator: "v")
        reply.mayStore = false
        source.prepare(reply)
        _ = try await cache.value(list)
        try cache.core.memoryRows.trim(toCost: 0)
        source.prepare(.notModified())
        _ = try await cache.snapshot(list, .networkOnly)
        #expect(try cache.disk?.query(list.key) == nil)
        #expect(try files(with: "kept off").isEmpty)
    }

    @Test func `a new list that several events change at once is on the disk`() async throws {
        let cache = try scene.cache()
        let feed = PageSource().resource(pageSize: 2)
        try await cache.update { update in
            update.insertNewest(Note(1), in: feed.key)
            update.remove(Note.self, "9")
            update.insertNewest(Note(2), in: feed.key)
        }
        #expect(try cache.disk?.query(feed.key) != nil)
    }

    @Test func `a list whose row the disk has evicted is on the disk again after an event`() async throws {
        let cache = try scene.cache()
        let source = PageSource()
        let feed = source.resource(pageSize: 2)
        source.script.prepare(.value(EntityList([Note(2), Note(1)])))
        try await cache.timeline(feed, .cacheOnly).refresh()
        try cache.disk?.write { transaction throws in try transaction.remove(.query(feed.key)) }
        try await cache.update { $0.insertNewest(Note(3), in: feed.key) }
        #expect(try await cache.line(feed) == "3 2 1 .")
        #expect(try cache.disk?.query(feed.key) != nil)
    }
}

import LarderMemory
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

/// Two caches on one directory, each with a store of its own, stand for two processes: nothing of a cache is shared in memory.
@Suite("Cache: commits of other processes", .oneMinute)
struct OtherProcessTests {
    let scene = CacheScene()

    private struct Secret: CacheEntity {
        static let entityType = "secret"
        static var isMemoryOnly: Bool { true }
        var id: String
        var text: String
    }

    private func note(_ id: String) -> Resource<Note> {
        .entity(id, policy: .cacheOnly) { _ in throw Broken() }
    }

    private func list(_ source: ScriptedSource<EntityList<Note>>) -> Resource<EntityList<Note>> {
        .list("all", of: Note.self) { try await source.fetch($0) }
    }

    private func page(_ ids: ClosedRange<Int>, _ text: String = "a") -> Fetched<EntityList<Note>> {
        .value(EntityList(ids.map { Note(id: "\($0)", text: text, revision: nil) }))
    }

    @Test func `values of another process are read after the check interval and shown to observers`()
        async throws
    {
        let (one, two) = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(page(1...3))
        let list = list(source)
        _ = try await one.value(list)
        #expect(try await one.value(note("1")).text == "a")
        let seen = SequenceRecorder(one.snapshots(list, .cacheOnly))
        await seen.wait(for: 1)
        try await two.update { $0.modify(Note.self, "1") { $0.text = "b" } }
        scene.clock.advance(by: .milliseconds(99))
        #expect(try await one.value(note("1")).text == "a")
        scene.clock.advance(by: .milliseconds(1))
        #expect(try await one.value(note("1")).text == "b")
        #expect(try await one.value(list, .cacheOnly).items.map(\.text) == ["b", "a", "a"])
        await seen.wait { $0.last?.value?.items.first?.text == "b" }
        try await two.update { $0.edit(list.key) { $0.removeLast() } }
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await one.value(list, .cacheOnly).items.map(\.id) == ["1", "2"])
        // A commit of this process does not count as a foreign one.
        try await one.update { $0.modify(Note.self, "2") { $0.text = "c" } }
        scene.clock.advance(by: .milliseconds(100))
        let hits = one.core.entities.statistics.hits
        _ = try await one.snapshot(note("2"))
        _ = try await one.snapshot(note("3"))
        #expect(one.core.entities.statistics.hits > hits)
    }

    @Test func `a change applies to the value of the other process and not to the one in memory`() async throws {
        let (one, two) = (try scene.cache(), try scene.cache())
        try await one.update { $0.put(Note(id: "1", text: "a", revision: nil)) }
        #expect(try await one.value(note("1")).text == "a")
        try await two.update { $0.modify(Note.self, "1") { $0.text += "b" } }
        try await one.update { $0.modify(Note.self, "1") { $0.text += "c" } }
        #expect(try await one.value(note("1")).text == "abc")
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await two.value(note("1")).text == "abc")
    }

    @Test func `memory-only values do not depend on commits of other processes`() async throws {
        let (one, two) = (try scene.cache(), try scene.cache())
        let secret = Resource<Secret>.entity("1", policy: .cacheOnly) { _ in throw Broken() }
        try await one.update { $0.put(Secret(id: "1", text: "mine")) }
        #expect(try await one.value(secret).text == "mine")
        try await two.update { $0.put(Note(id: "1", text: "b", revision: nil)) }
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await one.value(secret).text == "mine")
        await #expect(throws: LarderError.self) { try await two.value(secret) }
    }

    @Test func `tag invalidations of another process apply here too`() async throws {
        let (one, two) = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(page(1...2))
        var list = list(source)
        list.tags = ["feed"]
        _ = try await one.value(list)
        #expect(try await one.snapshot(list, .cacheOnly).freshness == .fresh)
        scene.clock.advance(by: .seconds(1))
        try await two.invalidate(tag: "feed")
        try await one.invalidate(tag: "other")
        #expect(try await one.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        let again = try scene.cache()
        #expect(try await again.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
    }

    enum Invalidated: CaseIterable { case list, entity, tag }

    @Test(arguments: Invalidated.allCases, [false, true])
    func `a reply does not end an invalidation that another process has made since the request began`(
        _ what: Invalidated,
        _ isNotModified: Bool
    ) async throws {
        let caches = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        let notes = EntityList((1...2).map { Note(id: "\($0)", text: "a", revision: nil) })
        let reply = Fetched.value(notes, validator: "v")
        source.prepare(reply)
        var list = list(source)
        list.tags = ["feed"]
        _ = try await caches.0.value(list)
        scene.clock.advance(by: .seconds(1))
        let refresh = Task { [list] in try await caches.0.refresh(list) }
        await source.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        try await caches.1.update { update in
            switch what {
            case .list: update.invalidate(list.key)
            case .entity: update.invalidate(Note.self, "1")
            case .tag: update.invalidate(tag: "feed")
            }
        }
        scene.clock.advance(by: .seconds(1))
        source.answer(1, isNotModified ? .notModified() : reply)
        _ = try await refresh.value
        scene.clock.advance(by: .seconds(1))
        #expect(try await caches.0.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        #expect(try await caches.1.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        // The next one began after it.
        source.prepare(reply)
        _ = try await caches.0.refresh(list)
        scene.clock.advance(by: .seconds(1))
        #expect(try await caches.0.snapshot(list, .cacheOnly).freshness == .fresh)
        #expect(try await caches.1.snapshot(list, .cacheOnly).freshness == .fresh)
    }

    @Test(arguments: [false, true])
    func `an observed list that is invalidated during its request is requested again`(_ isForeign: Bool) async throws {
        let caches = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let seen = SequenceRecorder(caches.0.snapshots(list))
        await source.waitForRequests(1)
        source.answer(0, page(1...2))
        await seen.wait { $0.last?.freshness == .fresh }
        scene.clock.advance(by: .seconds(1))
        let refresh = Task { try await caches.0.refresh(list) }
        await source.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        try await (isForeign ? caches.1 : caches.0).update { $0.invalidate(list.key) }
        scene.clock.advance(by: .seconds(1))
        #expect(try await caches.0.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        source.answer(1, page(1...2))
        _ = try await refresh.value
        await source.waitForRequests(3)
        source.answer(2, page(1...2))
        await seen.wait { $0.last?.freshness == .fresh }
        #expect(source.requests.count == 3)
    }

    @Test func `a page that was requested before an item was invalidated by another process does not confirm the item`()
        async throws
    {
        let caches = (try scene.cache(), try scene.cache())
        let source = PageSource()
        let feed = source.resource()
        let timeline = caches.0.timeline(feed)
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        source.prepare([3, 2, 1])
        _ = try await timeline.loadOlder()
        scene.clock.advance(by: .seconds(120))
        let renewal = Task { try await timeline.refresh(around: ["2"]) }
        await source.script.waitForRequests(3)
        scene.clock.advance(by: .seconds(1))
        try await caches.1.update { $0.invalidate(Note.self, "2") }
        scene.clock.advance(by: .seconds(1))
        source.answer(2, [3, 2, 1])
        try await renewal.value
        #expect(try await caches.0.snapshot(note("2"), .cacheOnly).freshness == .stale(.invalidated))
    }

    @Test(arguments: [false, true])
    func `a reply does not replace a list that another process has read by a later request`(
        _ isNotModified: Bool
    ) async throws {
        let caches = (try scene.cache(), try scene.cache())
        let sources = (ScriptedSource<EntityList<Note>>(), ScriptedSource<EntityList<Note>>())
        let lists = (list(sources.0), list(sources.1))
        let notes = EntityList((1...2).map { Note(id: "\($0)", text: "a", revision: nil) })
        sources.0.prepare(.value(notes, validator: "v"))
        _ = try await caches.0.value(lists.0)
        scene.clock.advance(by: .seconds(1))
        let refresh = Task { [caches, lists] in try await caches.0.refresh(lists.0) }
        await sources.0.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        sources.1.prepare(page(1...3, "b"))
        _ = try await caches.1.refresh(lists.1)
        scene.clock.advance(by: .seconds(1))
        sources.0.answer(1, isNotModified ? .notModified() : .value(notes, validator: "v"))
        _ = try await refresh.value
        scene.clock.advance(by: .seconds(1))
        for cache in [caches.0, caches.1] {
            let snapshot = try await cache.snapshot(lists.0, .cacheOnly)
            #expect(snapshot.value?.items.map(\.id) == ["1", "2", "3"])
            #expect(snapshot.value?.items.map(\.text) == ["b", "b", "b"])
            #expect(snapshot.times?.validatedAt == scene.clock.now - .seconds(2))
        }
    }

    @Test func `a list that one process confirms after the clock was set back is fresh in the other`() async throws {
        let caches = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(page(1...2), page(1...2))
        var list = list(source)
        list.tags = ["feed"]
        _ = try await caches.0.value(list)
        try await caches.0.invalidate(tag: "feed")
        scene.clock.advance(by: .seconds(1))
        #expect(try await caches.1.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        scene.clock.set(wall: scene.clock.now - .seconds(600))
        // Both notice it.
        for cache in [caches.0, caches.1] {
            #expect(try await cache.snapshot(list, .cacheOnly).freshness != .fresh)
        }
        scene.clock.advance(by: .seconds(1))
        _ = try await caches.0.value(list, .networkOnly)
        scene.clock.advance(by: .milliseconds(100))
        for cache in [caches.0, caches.1] {
            #expect(try await cache.snapshot(list, .cacheOnly).freshness == .fresh)
        }
        #expect(try await scene.cache().snapshot(list, .cacheOnly).freshness == .fresh)
        // Later invalidations apply in both.
        try await caches.1.invalidate(tag: "feed")
        scene.clock.advance(by: .milliseconds(100))
        for cache in [caches.0, caches.1] {
            #expect(try await cache.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        }
    }

    @Test func `an invalidation of another process applies after a small step of the clock`() async throws {
        let caches = (try scene.cache(), try scene.cache())
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(page(1...2), page(1...2))
        var list = list(source)
        list.tags = ["feed"]
        _ = try await caches.0.value(list)
        try await caches.0.invalidate(tag: "feed")
        scene.clock.advance(by: .seconds(1))
        _ = try await caches.0.value(list, .networkOnly)
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await caches.1.snapshot(list, .cacheOnly).freshness == .fresh)
        scene.clock.advance(by: .seconds(1))
        try await caches.1.invalidate(tag: "feed")
        // Too small to be noticed.
        scene.clock.advance(by: .milliseconds(100))
        scene.clock.set(wall: scene.clock.now - .milliseconds(1_500))
        #expect(try await caches.0.snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
        try await caches.0.invalidate(tag: "other")
        #expect(try await scene.cache().snapshot(list, .cacheOnly).freshness == .stale(.invalidated))
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `random changes by two processes leave both with the stored values`(_ seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let caches = [try scene.cache(), try scene.cache()]
        let source = ScriptedSource<EntityList<Note>>()
        source.prepare(page(0...5))
        let list = list(source)
        _ = try await caches[0].value(list)
        for round in 0..<60 {
            let cache = caches[generator.uniform(in: 0..<2)]
            let id = "\(generator.uniform(in: 0..<6))"
            switch generator.uniform(in: 0..<5) {
            case 0, 1: try await cache.update { $0.modify(Note.self, id) { $0.text += "\(round)," } }
            case 2: try await cache.update { $0.put(Note(id: id, text: "put \(round)", revision: nil)) }
            case 3: try await cache.update { $0.edit(list.key) { $0 = $0.suffix(1) + $0.dropLast() } }
            default: _ = try await cache.value(list, .cacheOnly)
            }
            guard generator.uniform(in: 0..<3) == 0 else { continue }
            scene.clock.advance(by: .milliseconds(100))
            let stored = try await scene.cache().value(list, .cacheOnly)
            for cache in caches {
                #expect(try await cache.value(list, .cacheOnly) == stored, "seed \(seed), round \(round)")
                for id in stored.items.map(\.id) {
                    let alone = try await cache.value(note(id))
                    #expect(stored.items.contains(alone), "seed \(seed), round \(round), \(id)")
                }
            }
        }
    }
}

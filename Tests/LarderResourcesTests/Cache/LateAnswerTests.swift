import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Cache: answers that come late", .oneMinute)
struct LateAnswerTests {
    private let scene = CacheScene()

    private func note(_ source: ScriptedSource<Note>) -> Resource<Note> {
        .entity("1", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    private func list(_ source: ScriptedSource<EntityList<Note>>) -> Resource<EntityList<Note>> {
        .list("notes", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    // MARK: Not found

    @Test(arguments: [false, true])
    func `"gone" does not remove what an event has stored since the request began`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let source = ScriptedSource<Note>()
        let all = list(ScriptedSource())
        let note = note(source)
        let reading = Task { try await cache.snapshot(note) }
        await source.waitForRequests(1)
        try await cache.put(EntityList([Note(1, "event")]), for: all)
        source.answer(0, .gone)
        #expect(try await reading.value.value?.text == "event")
        #expect(cache.stored(all)?.value?.items.map(\.text) == ["event"])
    }

    @Test func `"gone" does not remove what another process has fetched by a later request`() async throws {
        let caches = (try scene.cache(), try scene.cache())
        let sources = (ScriptedSource<Note>(), ScriptedSource<Note>())
        let notes = (note(sources.0), note(sources.1))
        let reading = Task { [caches, notes] in try await caches.0.snapshot(notes.0) }
        await sources.0.waitForRequests(1)
        scene.clock.advance(by: .seconds(1))
        sources.1.prepare(.value(Note(1, "new")))
        _ = try await caches.1.value(notes.1)
        scene.clock.advance(by: .seconds(1))
        sources.0.answer(0, .gone)
        #expect(try await reading.value.value?.text == "new")
        #expect(try scene.cache().stored(notes.0)?.value?.text == "new")
    }

    @Test func `"gone" does not remove a list that was stored since the request began`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let reading = Task { try await cache.snapshot(list) }
        await source.waitForRequests(1)
        try await cache.put(EntityList([Note(1, "event")]), for: list)
        source.answer(0, .gone)
        #expect(try await reading.value.value?.items.map(\.text) == ["event"])
        #expect(try scene.cache().stored(list)?.value?.items.map(\.text) == ["event"])
    }

    @Test func `a list does not get an entity that was deleted since its request began`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let reading = Task { try await cache.snapshot(list) }
        await source.waitForRequests(1)
        try await cache.update { $0.remove(Note.self, "2") }
        source.answer(0, .value(EntityList([Note(1), Note(2)]), validator: "v"))
        let shown = try await reading.value
        #expect(shown.value?.items.map(\.id) == ["1"] && shown.freshness == .fresh)
    }

    // MARK: Removed lists

    @Test(arguments: [false, true])
    func `the answer of a request in flight does not restore a removed list`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let source = ScriptedSource<EntityList<Note>>()
        let list = list(source)
        let reading = Task { try? await cache.value(list) }
        await source.waitForRequests(1)
        try await cache.remove(list)
        source.answer(0, .value(EntityList([Note(1)])))
        _ = await reading.value
        #expect(cache.stored(list) == nil)
        source.prepare(.value(EntityList([Note(2)])))
        #expect(try await cache.value(list).items.map(\.id) == ["2"])
    }

    @Test(arguments: [false, true])
    func `the answer of a request in flight does not restore a value that was removed by its key`(_ isInMemory: Bool)
        async throws
    {
        let cache = try scene.cache(inMemory: isInMemory)
        let source = ScriptedSource<String>()
        let word = Resource<String>("word", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
        let reading = Task { try? await cache.value(word) }
        await source.waitForRequests(1)
        try await cache.update { $0.remove(word.key) }
        source.answer(0, .value("old"))
        _ = await reading.value
        #expect(cache.stored(word) == nil)
        #expect(try scene.cache(inMemory: isInMemory).stored(word) == nil)
        source.prepare(.value("new"))
        #expect(try await cache.value(word) == "new")
    }

    @Test func `the answer of a request in flight does not restore a removed timeline`() async throws {
        let cache = try scene.cache()
        let source = PageSource()
        let feed = source.resource()
        let timeline = cache.timeline(feed, .cacheOnly)
        source.prepare([3, 2, 1])
        try await timeline.refresh()
        let refresh = Task { try? await timeline.refresh() }
        await source.script.waitForRequests(2)
        try await cache.update { $0.remove(feed.key) }
        source.answer(1, [3, 2, 1])
        _ = await refresh.value
        #expect(try await cache.line(feed) == "–")
        #expect(try await scene.cache().line(feed) == "–")
        source.prepare([3, 2, 1])
        try await timeline.refresh()
        #expect(try await cache.line(feed) == "3 2 1 .")
    }

    @Test(arguments: [false, true])
    func `"not modified" and "gone" for an older page do not restore a removed timeline`(_ isGone: Bool) async throws {
        let cache = try scene.cache()
        let source = PageSource()
        let feed = source.resource()
        let timeline = cache.timeline(feed, .cacheOnly)
        source.prepare([6, 5, 4], next: "after 4")
        source.prepare([3, 2, 1], validator: "v")
        try await timeline.refresh()
        try await timeline.loadOlder()
        scene.clock.advance(by: .seconds(1))
        let refresh = Task { try? await timeline.refresh(around: ["2"], isUserInitiated: true) }
        await source.script.waitForRequests(3)
        #expect(source.requests.last?.validator == "v")
        try await cache.update { $0.remove(feed.key) }
        source.script.answer(2, isGone ? .gone : .notModified())
        _ = await refresh.value
        #expect(try await cache.line(feed) == "–")
        #expect(try await scene.cache().line(feed) == "–")
    }

    // MARK: Not modified

    @Test func `the time limit of a request covers the second attempt for an evicted value`() async throws {
        let cache = try scene.cache(inMemory: true)
        let source = ScriptedSource<String>()
        var word = Resource<String>("word", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
        word.timeout = .seconds(30)
        source.prepare(.value("a", validator: "v"))
        let resource = word
        _ = try await cache.value(resource)
        let start = scene.clock.uptime
        let reading = Task { try await cache.refresh(resource) }
        await source.waitForRequests(2)
        #expect(source.requests.last?.validator == "v")
        cache.trimMemory(toBytes: 0)
        scene.clock.advance(by: .seconds(20))
        source.answer(1, .notModified())
        await source.waitForRequests(3)
        await rest()
        #expect(scene.clock.nextWakeUp == start + .seconds(30))
        scene.clock.advance(by: .seconds(30))
        let error = await #expect(throws: LarderError.self) { try await reading.value }
        #expect(error?.code == .timedOut)
    }

    @Test(arguments: [false, true])
    func `an earlier "not modified" does not set back what another process has confirmed later`(_ isList: Bool)
        async throws
    {
        let caches = (try scene.cache(), try scene.cache())
        let (words, lists) = (ScriptedSource<Note>(), ScriptedSource<EntityList<Note>>())
        let (one, all) = (note(words), list(lists))
        words.prepare(.value(Note(id: "1", text: "a"), validator: "v"))
        lists.prepare(.value(EntityList([Note(id: "2", text: "a")]), validator: "v"))
        _ = try await caches.0.value(one)
        _ = try await caches.0.value(all)
        scene.clock.advance(by: .seconds(1))
        func refresh(_ cache: LarderCache) -> Task<Void, any Error> {
            Task { if isList { _ = try await cache.refresh(all) } else { _ = try await cache.refresh(one) } }
        }
        func waitForRequest(_ index: Int) async {
            if isList {
                await lists.waitForRequests(index + 1)
            } else {
                await words.waitForRequests(index + 1)
            }
        }
        func answer(_ index: Int) {
            if isList { lists.answer(index, .notModified()) } else { words.answer(index, .notModified()) }
        }
        let early = refresh(caches.0)
        await waitForRequest(1)
        scene.clock.advance(by: .seconds(1))
        let late = refresh(caches.1)
        await waitForRequest(2)
        let confirmed = scene.clock.now
        answer(2)
        try await late.value
        scene.clock.advance(by: .seconds(1))
        answer(1)
        try await early.value
        scene.clock.advance(by: .seconds(1))
        for cache in [caches.0, caches.1, try scene.cache()] {
            let times =
                isList
                ? try await cache.snapshot(all, .cacheOnly).times : try await cache.snapshot(one, .cacheOnly).times
            #expect(times?.validatedAt == confirmed)
        }
    }

    @Test func `"not modified" does not confirm a row with another validator`() async throws {
        let caches = (try scene.cache(), try scene.cache())
        let sources = (ScriptedSource<Note>(), ScriptedSource<Note>())
        sources.0.prepare(.value(Note(id: "1", text: "a"), validator: "a"))
        _ = try await caches.0.value(note(sources.0))
        let fetchedAt = scene.clock.now
        let core = caches.0.core
        // Another process replaces the row, and memory no longer has the value.
        sources.1.prepare(.value(Note(id: "1", text: "b"), validator: "b"))
        _ = try await caches.1.value(note(sources.1), .networkOnly)
        caches.0.trimMemory(toBytes: 0)
        scene.clock.advance(by: .seconds(10))
        let stamp = core.stamps.next()
        var update = CacheUpdate()
        update.steps = [.touch(.entity(EntityKey(type: "note", id: "1")), validator: "a", stated: nil)]
        try core.commit(update, askedAt: stamp)
        #expect(try scene.cache().stored(note(sources.0))?.times?.validatedAt == fetchedAt)
    }

    @Test(arguments: [false, true])
    func `"not modified" with must-revalidate alone keeps the known lifetime`(_ isList: Bool) async throws {
        let cache = try scene.cache()
        let (words, lists) = (ScriptedSource<Note>(), ScriptedSource<EntityList<Note>>())
        let note = Resource<Note>.entity("1") { try await words.fetch($0) }
        let list = Resource<EntityList<Note>>.list("notes") { try await lists.fetch($0) }
        words.prepare(.value(Note(id: "1", text: "a"), validator: "v", lifetime: .seconds(600)))
        lists.prepare(.value(EntityList([Note(id: "2", text: "a")]), validator: "v", lifetime: .seconds(600)))
        _ = try await cache.value(note)
        _ = try await cache.value(list)
        scene.clock.advance(by: .seconds(10))
        if isList {
            var confirmed = Fetched<EntityList<Note>>.notModified()
            confirmed.mustRevalidate = true
            lists.prepare(confirmed)
            #expect(try await cache.refresh(list).expiresAt == scene.clock.now + .seconds(600))
            scene.clock.advance(by: .seconds(600))
            #expect(cache.stored(list)?.freshness == .stale(.validationRequired))
        } else {
            var confirmed = Fetched<Note>.notModified()
            confirmed.mustRevalidate = true
            words.prepare(confirmed)
            #expect(try await cache.refresh(note).expiresAt == scene.clock.now + .seconds(600))
            scene.clock.advance(by: .seconds(600))
            #expect(cache.stored(note)?.freshness == .stale(.validationRequired))
        }
    }

    // MARK: Reads during a change

    /// Calls a function once while a payload is decoded, within a read of the disk.
    private final class DecodingHook: DiskStore.PayloadTransform {
        let action = Mutex<(@Sendable () -> Void)?>(nil)
        var identifier: String { "hook" }

        func encode(_ payload: [UInt8]) throws -> [UInt8] { payload }

        func decode(_ stored: [UInt8]) throws -> [UInt8] {
            action.withLock { $0.take() }?()
            return stored
        }
    }

    @Test func `a row that was read before a removal is not put into memory after it`() async throws {
        let hook = DecodingHook()
        var configuration = scene.configuration()
        configuration.editStore { $0.transform = hook }
        let cache = try LarderCache(configuration)
        let (all, one) = (list(ScriptedSource()), note(ScriptedSource()))
        try await cache.put(EntityList([Note(1), Note(2)]), for: all)
        cache.trimMemory(toBytes: 0)
        hook.action.withLock { action in
            action = { [weak cache] in
                do { try cache?.updateBlocking { $0.remove(Note.self, "1") } } catch { Issue.record(error) }
            }
        }
        #expect(cache.stored(all)?.value?.items.map(\.id) == ["2"])
        #expect(hook.action.withLock { $0 == nil })
        #expect(cache.stored(one) == nil)
    }
}

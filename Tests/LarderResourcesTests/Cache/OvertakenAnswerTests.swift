import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

@Suite("Cache: answers that are overtaken", .oneMinute)
struct OvertakenAnswerTests {
    private let scene = CacheScene()

    private func note(_ source: ScriptedSource<Note>) -> Resource<Note> {
        .entity("1", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    private func plain(_ text: String) -> Note { Note(id: "1", text: text) }

    /// An observed note whose lifetime has ended, with a request in flight, which a local change overtakes.
    private func overtaken(
        _ cache: LarderCache,
        _ source: ScriptedSource<Note>
    ) async throws -> SequenceRecorder<Snapshot<Note>> {
        source.prepare(.value(plain("old"), validator: "v"))
        _ = try await cache.value(note(source))
        scene.clock.advance(by: .seconds(61))
        let seen = SequenceRecorder(cache.snapshots(note(source), .staleWhileRevalidate))
        await source.waitForRequests(2)
        try await cache.update { $0.modify(Note.self, "1") { $0.text += " and mine" } }
        return seen
    }

    @Test(arguments: [false, true])
    func `an answer that a local change has overtaken is asked for again`(_ isInMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: isInMemory)
        let source = ScriptedSource<Note>()
        let seen = try await overtaken(cache, source)
        source.answer(1, .value(plain("server")))
        await rest()
        #expect(cache.stored(note(source))?.value?.text == "old and mine")
        try #require(source.requests.count == 3)
        source.answer(2, .value(plain("server and mine")))
        let last = await seen.wait { $0.last?.value?.text == "server and mine" && $0.last?.isFetching == false }.last
        #expect(last?.freshness == .fresh)
        await rest()
        #expect(source.requests.count == 3)
    }

    @Test func `a confirmation that a local change has overtaken is asked for again`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let seen = try await overtaken(cache, source)
        #expect(source.requests[1].validator == "v")
        source.answer(1, .notModified())
        await rest()
        try #require(source.requests.count == 3 && source.requests.last?.validator == nil)
        source.answer(2, .value(plain("old and mine"), validator: "w"))
        await seen.wait { $0.last?.freshness == .fresh && $0.last?.isFetching == false }
    }

    @Test func `"gone" that a local change has overtaken is asked for again`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let seen = try await overtaken(cache, source)
        source.answer(1, .gone)
        await rest()
        try #require(source.requests.count == 3)
        source.answer(2, .gone)
        await seen.wait { $0.last?.freshness == .missing && $0.last?.isFetching == false }
    }

    @Test func `an item of a list that a local change has overtaken is asked for again`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes", freshness: .timeToLive(.seconds(60))) {
            try await source.fetch($0)
        }
        source.prepare(.value(EntityList([plain("old"), Note(2)])))
        _ = try await cache.value(list)
        scene.clock.advance(by: .seconds(61))
        let seen = SequenceRecorder(cache.snapshots(list))
        await source.waitForRequests(2)
        try await cache.update { $0.modify(Note.self, "1") { $0.text += " and mine" } }
        source.answer(1, .value(EntityList([plain("server"), Note(2)])))
        await rest()
        try #require(source.requests.count == 3)
        source.answer(2, .value(EntityList([plain("server and mine"), Note(2)])))
        let last = await seen.wait { $0.last?.freshness == .fresh && $0.last?.isFetching == false }.last
        #expect(last?.value?.items.first?.text == "server and mine")
    }

    @Test func `an answer that an event has overtaken is not asked for again`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        let seen = SequenceRecorder(cache.snapshots(note(source)))
        await source.waitForRequests(1)
        scene.clock.advance(by: .seconds(1))
        try await cache.put(plain("event"), for: note(source))
        source.answer(0, .value(plain("server")))
        let last = await seen.wait { $0.last?.isFetching == false }.last
        #expect(last?.value?.text == "event" && last?.freshness == .fresh)
        await rest()
        #expect(source.requests.count == 1)
    }

    // MARK: Age

    private func aged<Value>(_ value: Value) -> Fetched<Value> {
        var fetched = Fetched.value(value)
        fetched.age = .seconds(10)
        return fetched
    }

    @Test func `an answer of a cache on the way does not replace what has come since it was made`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        try await cache.put(plain("event"), for: note(source))
        source.prepare(aged(plain("older")))
        #expect(try await cache.refresh(note(source)).value?.text == "event")
        source.prepare(.value(plain("newer")))
        #expect(try await cache.refresh(note(source)).value?.text == "newer")
    }

    @Test func `a list of a cache on the way does not replace what has come since it was made`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes") { try await source.fetch($0) }
        try await cache.put(EntityList([plain("event")]), for: list)
        source.prepare(aged(EntityList([Note(2)])))
        #expect(try await cache.refresh(list).value?.items.map(\.text) == ["event"])
    }

    @Test func `an older page of a cache on the way does not replace an item that has come since it was made`()
        async throws
    {
        let cache = try scene.cache()
        let source = PageSource()
        let feed = source.resource()
        let timeline = cache.timeline(feed, .cacheOnly)
        source.prepare([3], next: "after 3")
        try await timeline.refresh()
        try await cache.update { $0.put(plain("event")) }
        source.script.prepare(aged(EntityList([plain("older")])))
        try await timeline.loadOlder()
        #expect(try await timeline.snapshot().items.map(\.text) == ["", "event"])
    }
}

import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

/// A post of which a list has no text.
private struct Photo: CacheEntity {
    static let entityType = "photo"
    static let merge: Merge? = { new, stored in
        var merged = new
        merged.text = new.text ?? stored.text
        return merged
    }

    var id: Int
    var text: String?
    var isLiked = false
    var version: Int64 = 1

    var entityVersion: Int64? { version }
}

/// What was read for another user (`CacheUpdate.invalidateEverything`).
@Suite("Cache: change of the user", .oneMinute)
struct UserChangeTests {
    private let scene = CacheScene()

    private func word(_ source: ScriptedSource<String>) -> Resource<String> {
        Resource("word", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    private func note(_ source: ScriptedSource<Note>) -> Resource<Note> {
        .entity("1", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
    }

    @Test(arguments: [false, true])
    func `values, entities and lists are stale and are fetched without a validator`(isRestarted: Bool) async throws {
        var cache = try scene.cache()
        let words = ScriptedSource<String>()
        let notes = ScriptedSource<Note>()
        let lists = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list(
            "notes",
            freshness: .timeToLive(.seconds(60)),
            policy: .cacheFirst
        ) { try await lists.fetch($0) }
        words.prepare(.value("a", validator: "1"))
        notes.prepare(.value(Note(1), validator: "1"))
        lists.prepare(.value(EntityList([Note(2)]), validator: "1"))
        _ = try await cache.value(word(words))
        _ = try await cache.value(note(notes))
        _ = try await cache.value(list)
        scene.clock.advance(by: .seconds(1))
        try await cache.update { $0.invalidateEverything() }
        if isRestarted { cache = try scene.cache() }
        #expect(cache.stored(word(words))?.freshness == .stale(.invalidated))
        #expect(cache.stored(note(notes))?.freshness == .stale(.invalidated))
        #expect(cache.stored(list)?.freshness == .stale(.invalidated))
        words.prepare(.value("b", validator: "1"))
        notes.prepare(.value(Note(1, "b"), validator: "1"))
        lists.prepare(.value(EntityList([Note(2, "b")]), validator: "1"))
        #expect(try await cache.value(word(words)) == "b")
        #expect(try await cache.value(note(notes)).text == "b")
        #expect(try await cache.value(list).items.first?.text == "b")
        for requests in [words.requests, notes.requests, lists.requests] {
            #expect(requests.count == 2 && requests.last?.validator == nil)
        }
        // What was fetched since is fresh.
        #expect(try await cache.value(word(words)) == "b" && words.requests.count == 2)
        #expect(cache.stored(list)?.freshness == .fresh && cache.stored(note(notes))?.freshness == .fresh)
    }

    @Test func `a reply to a request that began before is stale`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let reading = Task { try await cache.value(word(source)) }
        await source.waitForRequests(1)
        try await cache.update { $0.invalidateEverything() }
        source.answer(0, .value("a"))
        #expect(try await reading.value == "a")
        #expect(cache.stored(word(source))?.freshness == .stale(.invalidated))
    }

    @Test func `a change of a value does not confirm it`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        source.prepare(.value(Note(1)))
        _ = try await cache.value(note(source))
        try await cache.update { $0.invalidateEverything() }
        try await cache.update { $0.modify(Note.self, "1") { $0.text = "b" } }
        #expect(cache.stored(note(source))?.value?.text == "b")
        #expect(cache.stored(note(source))?.freshness == .stale(.invalidated))
    }

    @Test(arguments: ["memory", "disk", "restart"])
    func `a part is not merged with what another user has read`(place: String) async throws {
        var cache = try scene.cache()
        let photo = Resource<Photo>.entity(7, freshness: .timeToLive(.seconds(60))) { _ in
            .value(Photo(id: 7, text: "a", isLiked: true))
        }
        let list = Resource<EntityList<Photo>>.list("photos", showing: .partial) { _ in
            .value(EntityList([Photo(id: 7)]))
        }
        _ = try await cache.value(photo)
        scene.clock.advance(by: .seconds(1))
        try await cache.update { $0.invalidateEverything() }
        if place == "disk" { cache.trimMemory(toBytes: 0) }
        if place == "restart" { cache = try scene.cache() }
        #expect(try await cache.refresh(list).value?.items == [Photo(id: 7)])
        #expect(cache.stored(list)?.freshness == .fresh)
        #expect(try await scene.cache().value(list, .cacheOnly).items == [Photo(id: 7)])
    }
}

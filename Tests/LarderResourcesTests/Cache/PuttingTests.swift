import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Cache: values from elsewhere", .oneMinute)
struct PuttingTests {
    private let scene = CacheScene()

    private static func word(_ freshness: Freshness.Demand = .source) -> Resource<String> {
        Resource("word", freshness: freshness) { _ in throw Broken() }
    }

    private static let notes = Resource<EntityList<Note>>.list("notes", policy: .cacheFirst) { _ in throw Broken() }

    @Test func `an event brings a value, a list and an entity in one commit`() async throws {
        let cache = try scene.cache()
        let one = Resource<Note>.entity("1") { _ in throw Broken() }
        let seen = SequenceRecorder(cache.snapshots(Self.notes, .cacheOnly))
        try await cache.update { update in
            try update.put("a", for: Self.word(), validator: "v", lifetime: .seconds(5))
            try update.put(EntityList([Note(id: "1", text: "x")]), for: Self.notes)
            try update.put(Note(id: "1", text: "y"), for: one)
        }
        #expect(try await cache.value(Self.word()) == "a")
        #expect(try await cache.snapshot(Self.word()).validator == "v")
        #expect(try await cache.value(Self.notes).items.map(\.text) == ["y"])
        await seen.wait { $0.last?.value?.items.first?.text == "y" }
        scene.clock.advance(by: .seconds(5))
        #expect(try await cache.snapshot(Self.word(), .cacheOnly).freshness == .stale(.expired))
        #expect(try await scene.cache().value(Self.notes, .cacheOnly).items.map(\.text) == ["y"])
    }

    @Test func `a value put for a resource that is in memory only stays off the disk`() async throws {
        let cache = try scene.cache()
        var word = Self.word()
        word.isMemoryOnly = true
        var notes = Self.notes
        notes.isMemoryOnly = true
        let resources = (word, notes)
        try await cache.update { update in
            try update.put("secret", for: resources.0)
            try update.put(EntityList([Note(id: "1", text: "secret")]), for: resources.1)
        }
        #expect(try await cache.value(word) == "secret")
        #expect(try await cache.value(notes).items.map(\.text) == ["secret"])
        #expect(try cache.disk?.entity(EntityKey(type: "=word", id: word.key.canonicalParameters)) == nil)
        #expect(try cache.disk?.entity(Note.key("1")) == nil && cache.disk?.list(notes.key) == nil)
    }

    @Test func `everyday types describe themselves in a line`() async throws {
        let cache = try scene.cache()
        try await cache.put("a", for: Self.word())
        let snapshot = try await cache.snapshot(Self.word())
        let time = scene.clock.now.rfc3339()
        let end = (scene.clock.now + .seconds(60)).rfc3339()
        #expect("\(snapshot)" == "fresh, from memory, validated \(time), expires \(end): a")
        #expect("\(Self.word())" == "Resource<String>(word)" && "\(Freshness.stale(.expired))" == "stale (expired)")
        let error = LarderError(.rejected, "Too many.", status: 503)
        #expect("\(error)" == "Too many." && error.debugDescription == "LarderError(rejected, status 503): Too many.")
        #expect("\(scene.clock.now)" == time)
    }
}

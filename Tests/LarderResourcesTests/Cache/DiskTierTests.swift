import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Cache: turning the disk tier off", .oneMinute)
struct DiskTierTests {
    private let scene = CacheScene()

    private func word(_ source: ScriptedSource<String>) -> Resource<String> {
        Resource("word", freshness: .timeToLive(.seconds(86_400))) { try await source.fetch($0) }
    }

    private func notes(_ source: ScriptedSource<EntityList<Note>>) -> Resource<EntityList<Note>> {
        .list("notes", of: Note.self, freshness: .timeToLive(.seconds(86_400))) { try await source.fetch($0) }
    }

    /// Stars a note; the network never allows to send it.
    private func star() -> WriteBehind<String, Note> {
        WriteBehind<String, Note>(
            "star",
            scope: { $0 },
            changes: { id, changes in changes.modify(Note.self, id) { $0.text += "*" } },
            send: { _ in throw LarderError(.offline, "off") }
        )
    }

    private func cache() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.operations = [star()]
        return try LarderCache(configuration)
    }

    @Test func `a cache that opens while it is off reads no content, and keeps the outbox and the metadata`()
        async throws
    {
        let list = ScriptedSource<EntityList<Note>>()
        list.prepare(.value(EntityList([Note(id: "1", text: "a")])))
        do {
            let cache = try cache()
            _ = try await cache.value(notes(list))
            try await cache.update { $0.setMetadata([7], for: "mine") }
            try await cache.setDiskTier(isOn: false)
            try cache.enqueue("1", star())
            cache.close()
        }
        let cache = try cache()
        #expect(!cache.isDiskTierOn)
        let missing = await #expect(throws: LarderError.self) { try await cache.value(notes(list), .cacheOnly) }
        #expect(missing?.code == .notCached)
        #expect(cache.outbox.status.pending == 1)
        #expect(try cache.disk?.metadata("mine") == [7])
        // The pending change is shown on what the server returns.
        list.prepare(.value(EntityList([Note(id: "1", text: "b")])))
        #expect(try await cache.value(notes(list)).items.map(\.text) == ["b*"])
    }

    @Test func `what is read while it is off stays in memory, and tokens are stored`() async throws {
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        do {
            let cache = try cache()
            try await cache.setDiskTier(isOn: false)
            #expect(try await cache.value(word(source)) == "a")
            try await cache.update { update in
                update.put(Note(id: "1", text: "x"))
                update.setToken("9", for: "feed")
            }
            #expect(try await cache.value(word(source), .cacheOnly) == "a")
            #expect(try cache.disk?.statistics().items == 0)
            cache.close()
        }
        let cache = try cache()
        #expect(try cache.disk?.token("feed") == "9")
        await #expect(throws: LarderError.self) { try await cache.value(word(source), .cacheOnly) }
    }

    @Test func `what is removed while it is off leaves the disk at once`() async throws {
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        let list = ScriptedSource<EntityList<Note>>()
        list.prepare(.value(EntityList([Note(id: "1", text: "a")])))
        let cache = try cache()
        _ = try await cache.value(word(source))
        _ = try await cache.value(notes(list))
        #expect(try cache.disk?.statistics().items == 3)
        try await cache.setDiskTier(isOn: false)
        try await cache.remove(word(source))
        try await cache.remove(notes(list))
        try await cache.update { $0.remove(Note.self, "1") }
        #expect(try cache.disk?.statistics().items == 0)
    }

    @Test(arguments: [false, true])
    func `turned on again nothing that has missed changes is shown`(isRestarted: Bool) async throws {
        let source = ScriptedSource<String>()
        source.prepare(.value("old"), .value("new"))
        var cache = try cache()
        #expect(try await cache.value(word(source)) == "old")
        try await cache.setDiskTier(isOn: false)
        // Invalidated and fetched again, which the disk does not know.
        try await cache.invalidate(word(source))
        #expect(try await cache.value(word(source)) == "new")
        try cache.enqueue("1", star())
        if isRestarted {
            cache.close()
            cache = try self.cache()
        }
        try await cache.setDiskTier(isOn: true)
        #expect(cache.isDiskTierOn && cache.outbox.status.pending == 1)
        // Commits of other processes would not have made it outdated.
        await #expect(throws: LarderError.self) { try await cache.value(word(source), .cacheOnly) }
        // From now on values are stored again.
        source.prepare(.value("newer"))
        try await cache.refresh(word(source))
        cache.close()
        let next = try self.cache()
        #expect(next.isDiskTierOn)
        #expect(try await next.value(word(source)) == "newer")
    }

    @Test func `an invalidation while it is off is not lost for values in memory`() async throws {
        let list = ScriptedSource<EntityList<Note>>()
        list.prepare(.value(EntityList([Note(id: "1", text: "a")])), .value(EntityList([Note(id: "1", text: "b")])))
        let cache = try cache()
        _ = try await cache.value(notes(list))
        try await cache.setDiskTier(isOn: false)
        try await cache.update { $0.invalidate(Note.self, "1") }
        #expect(try await cache.value(notes(list), .cacheFirst).items.map(\.text) == ["b"])
    }

    @Test func `if the switch cannot be stored the tier is off`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        killable.fail(.full, atStep: 1, untilHealed: true)
        await #expect(throws: LarderError.self) { try await cache.setDiskTier(isOn: false) }
        #expect(!cache.isDiskTierOn)
    }

    // MARK: One feature

    private func feature(_ source: ScriptedSource<String>, _ isOn: Switch) -> Resource<String> {
        var word = word(source)
        word.isCached = { isOn.value }
        return word
    }

    @Test func `a resource that is not cached asks the network at each read, and is kept off the disk`() async throws {
        let isOn = Switch(true)
        let source = ScriptedSource<String>()
        source.prepare(.value("a"))
        let cache = try cache()
        #expect(try await cache.value(feature(source, isOn)) == "a")
        #expect(try await cache.value(feature(source, isOn)) == "a" && source.requests.count == 1)
        isOn.value = false
        for text in ["b", "c"] {
            source.prepare(.value(text))
            #expect(try await cache.value(feature(source, isOn), .staleWhileRevalidate) == text)
        }
        source.prepare(failure: LarderError(.offline, "off"))
        await #expect(throws: LarderError.self) { try await cache.value(feature(source, isOn), .cacheAndLoad) }
        await #expect(throws: LarderError.self) { try await cache.value(feature(source, isOn), .cacheOnly) }
        #expect(source.requests.count == 4)
        #expect(try cache.disk?.statistics().items == 0)
        isOn.value = true
        #expect(try await cache.value(feature(source, isOn)) == "c")
        cache.close()
        let next = try self.cache()
        await #expect(throws: LarderError.self) { try await next.value(feature(source, isOn), .cacheOnly) }
    }
}

/// A boolean that a test changes.
private final class Switch: Sendable {
    private let stored: Mutex<Bool>

    init(_ value: Bool) { stored = Mutex(value) }

    var value: Bool {
        get { stored.withLock { $0 } }
        set { stored.withLock { $0 = newValue } }
    }
}

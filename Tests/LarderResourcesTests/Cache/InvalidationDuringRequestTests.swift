import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Cache: invalidations during a request", .oneMinute)
struct InvalidationDuringRequestTests {
    enum Kind: String, CaseIterable, Sendable { case key, type, tag, prefix }

    private let scene = CacheScene()

    private func invalidate(_ kind: Kind, in cache: LarderCache) async throws {
        switch kind {
        case .key: try await cache.update { $0.invalidate(Note.self, "1") }
        case .type: try await cache.update { $0.invalidate(all: Note.self) }
        case .tag: try await cache.update { $0.invalidate(tag: "all") }
        case .prefix: try await cache.invalidate(startingWith: "note")
        }
    }

    @Test(arguments: Kind.allCases)
    func `an observed value that is invalidated during its request is requested again`(_ kind: Kind) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<Note>()
        var note = Resource<Note>.entity("1", freshness: .timeToLive(.seconds(60))) { try await source.fetch($0) }
        note.tags = ["all"]
        let seen = SequenceRecorder(cache.snapshots(note))
        await source.waitForRequests(1)
        try await invalidate(kind, in: cache)
        source.answer(0, .value(Note(1, "old")))
        await source.waitForRequests(2)
        source.answer(1, .value(Note(1, "new", revision: 2)))
        let last = await seen.wait { $0.last?.value?.text == "new" && $0.last?.isFetching == false }.last
        #expect(last?.freshness == .fresh && source.requests.count == 2)
    }

    @Test(arguments: Kind.allCases)
    func `an observed list is requested again if it or its items are invalidated during its request`(_ kind: Kind)
        async throws
    {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        var list = Resource<EntityList<Note>>.list("notes", freshness: .timeToLive(.seconds(60))) {
            try await source.fetch($0)
        }
        list.tags = ["all"]
        let seen = SequenceRecorder(cache.snapshots(list))
        await source.waitForRequests(1)
        try await invalidate(kind, in: cache)
        source.answer(0, .value(EntityList([Note(1, "old")])))
        await source.waitForRequests(2)
        source.answer(1, .value(EntityList([Note(1, "new", revision: 2)])))
        let last = await seen.wait { $0.last?.value?.items.first?.text == "new" && $0.last?.isFetching == false }.last
        #expect(last?.freshness == .fresh && source.requests.count == 2)
    }

    @Test func `an invalidation before the request of a part does not make it be requested in a loop`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        let list = Resource<EntityList<Note>>.list("notes", freshness: .timeToLive(.seconds(60))) {
            try await source.fetch($0)
        }
        source.prepare(.value(EntityList([Note(1), Note(2)])))
        let seen = SequenceRecorder(cache.snapshots(list))
        await seen.wait { $0.last?.freshness == .fresh }
        try await cache.update { $0.invalidate(all: Note.self) }
        await source.waitForRequests(2)
        source.answer(1, .value(EntityList([Note(1), Note(2)])))
        await seen.wait { $0.last?.freshness == .fresh && $0.last?.isFetching == false }
        #expect(source.requests.count == 2)
    }

    /// An entity that is shown and cannot be stored, which is reported after its commit.
    private struct Unstorable: CacheEntity {
        static let entityType = "unstorable"
        var id: String
        var text: String

        func encode(to encoder: any Encoder) throws { throw Broken() }
    }

    @Test func `an invalidation while an answer is announced is not lost`() async throws {
        let handler = Mutex<(@Sendable () -> Void)?>(nil)
        var configuration = scene.configuration()
        configuration.onEvent = { event in
            guard case .storageFailed = event else { return }
            handler.withLock { $0.take() }?()
        }
        let cache = try LarderCache(configuration)
        handler.withLock { handler in
            handler = { [weak cache] in
                do { try cache?.updateBlocking { $0.invalidate(Unstorable.self, "1") } } catch {
                    Issue.record(error)
                }
            }
        }
        let source = ScriptedSource<Unstorable>()
        let resource = Resource<Unstorable>.entity("1", freshness: .timeToLive(.seconds(60))) {
            try await source.fetch($0)
        }
        let seen = SequenceRecorder(cache.snapshots(resource))
        await source.waitForRequests(1)
        source.answer(0, .value(Unstorable(id: "1", text: "old")))
        await source.waitForRequests(2)
        source.answer(1, .value(Unstorable(id: "1", text: "new")))
        let last = await seen.wait { $0.last?.value?.text == "new" && $0.last?.isFetching == false }.last
        #expect(last?.freshness == .fresh && source.requests.count == 2)
    }
}

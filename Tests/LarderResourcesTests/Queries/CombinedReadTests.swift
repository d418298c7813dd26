import LarderStorage
import LarderTesting
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Dependent and combined reads", .oneMinute)
struct CombinedReadTests {
    private let scene = CacheScene()

    private func note(_ id: String, _ requests: RequestLog? = nil) -> Resource<Note> {
        .entity(id) { _ in
            requests?.note(id)
            return .value(Note(id: id, text: "text \(id)"))
        }
    }

    private final class RequestLog: Sendable {
        private let ids = Mutex<[String]>([])
        func note(_ id: String) { ids.withLock { $0.append(id) } }
        var all: [String] { ids.withLock { $0 } }
    }

    @Test func `a dependent read follows the resource that another one names, and asks for nothing before`()
        async throws
    {
        let cache = try scene.cache()
        let log = RequestLog()
        // The text of the first note is the identifier of the second.
        let first = Resource<Note>.entity("first") { _ in .value(Note(id: "first", text: "a")) }
        let named = cache.snapshots(first, .cacheOnly).map { snapshot in
            snapshot.value.map { note($0.text, log) }
        }
        let seen = SequenceRecorder(cache.snapshots(following: named))
        #expect(log.all == [])
        _ = try await cache.value(first)
        await seen.wait { $0.last?.value?.id == "a" }
        try await cache.update { $0.put(Note(id: "first", text: "b")) }
        await seen.wait { $0.last?.value?.id == "b" }
        // The one before is not observed any more.
        try await cache.update { $0.put(Note(id: "a", text: "again")) }
        try await cache.update { $0.put(Note(id: "b", text: "again")) }
        await seen.wait { $0.last?.value == Note(id: "b", text: "again") }
        #expect(!seen.elements.contains { $0.value == Note(id: "a", text: "again") })
        #expect(log.all == ["a", "b"])
        cache.close()
        await seen.waitForEnd()
    }

    @Test func `combined reads show both values, and each change of one`() async throws {
        let cache = try scene.cache()
        let both = LarderCache.combine(cache.snapshots(note("a")), cache.snapshots(note("b")))
        let seen = SequenceRecorder(both.map { "\($0.0.value?.text ?? "-"), \($0.1.value?.text ?? "-")" })
        await seen.wait { $0.last == "text a, text b" }
        try await cache.update { $0.put(Note(id: "b", text: "new")) }
        await seen.wait { $0.last == "text a, new" }
        cache.close()
        await seen.waitForEnd()
    }

    @Test func `the differences of a list lead from each list to the next`() async throws {
        let cache = try scene.cache()
        let list = Resource<EntityList<Note>>.list("all", of: Note.self) { _ in
            .value(EntityList(["a", "b", "c"].map { Note(id: $0, text: $0) }))
        }
        var differences = cache.snapshots(list).differences().makeAsyncIterator()
        let first = try #require(try await differences.next())
        #expect(first.difference.insertions.map(\.id) == ["a", "b", "c"])
        try await cache.update { update in
            update.remove(Note.self, "b")
            update.put(Note(id: "c", text: "new"))
        }
        let second = try #require(try await differences.next())
        #expect(second.items.map(\.text) == ["a", "new"])
        #expect(second.difference.removals.map(\.id) == ["b"])
        #expect(second.difference.updates.map(\.id) == ["c"])
    }
}

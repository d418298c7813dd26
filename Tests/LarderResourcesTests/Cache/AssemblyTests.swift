import LarderTesting
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources
@testable import LarderStorage

@Suite("Cache: assembly during commits", .oneMinute)
struct AssemblyTests {
    let scene = CacheScene()

    /// Commits an unrelated change during each assembly of a list, up to a limit.
    private final class Disturbance: Sendable {
        private let state = Mutex<(cache: LarderCache?, joins: Int)>((nil, 0))

        var joins: Int { state.withLock { $0.joins } }

        func begin(_ cache: LarderCache) { state.withLock { $0 = (cache, 0) } }

        func disturb() throws {
            let (cache, number) = state.withLock { state in
                state.joins += 1
                return (state.cache, state.joins)
            }
            guard let cache, number <= 100 else { return }
            try cache.updateBlocking { $0.put(Note(id: "unrelated \(number)", text: "", revision: 1)) }
        }
    }

    @Test(arguments: [false, true])
    func `a list is assembled at most twice during unrelated commits`(_ isOnDisk: Bool) async throws {
        let cache = try scene.cache(inMemory: !isOnDisk)
        let disturbance = Disturbance()
        let plain = EntityList<Note>.normalizer(showing: .complete)
        let normalizer = Normalizer<EntityList<Note>>(split: plain.split) { rest, lookup in
            try disturbance.disturb()
            return try plain.join(rest, &lookup)
        }
        let list = Resource<EntityList<Note>>("list", of: normalizer) { _ in
            .value(EntityList((0..<10).map { Note(id: "\($0)", text: "a", revision: 1) }))
        }
        disturbance.begin(cache)
        #expect(try await cache.value(list).items.count == 10)
        #expect(disturbance.joins <= 2)
        // A change to one of its entities is still shown.
        disturbance.begin(cache)
        try await cache.update { $0.modify(Note.self, "3") { $0.text = "b" } }
        #expect(try await cache.value(list, .cacheOnly).items[3].text == "b")
        #expect(disturbance.joins <= 2)
        guard isOnDisk else { return }
        cache.trimMemory(toBytes: 0)
        disturbance.begin(cache)
        #expect(try await cache.value(list, .cacheOnly).items[3].text == "b")
        #expect(disturbance.joins <= 2)
    }

    @Test func `a change to an entity during the assembly of a list is shown`() async throws {
        let cache = try scene.cache(inMemory: true)
        let plain = EntityList<Note>.normalizer(showing: .complete)
        let isFirst = Atomic<Bool>(true)
        let normalizer = Normalizer<EntityList<Note>>(split: plain.split) { rest, lookup in
            let list = try plain.join(rest, &lookup)
            // After the lookup of the entity, and before the list is registered as depending on it.
            if isFirst.exchange(false, ordering: .relaxed) {
                try cache.updateBlocking { $0.modify(Note.self, "1") { $0.text = "b" } }
            }
            return list
        }
        let list = Resource<EntityList<Note>>("list", of: normalizer) { _ in
            .value(EntityList([Note(id: "1", text: "a", revision: 1)]))
        }
        #expect(try await cache.value(list).items.map(\.text) == ["b"])
    }
}

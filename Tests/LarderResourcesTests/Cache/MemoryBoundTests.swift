import LarderMemory
import LarderSQLite
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources
@testable import LarderStorage

/// A value of a known size that counts how many of its kind are in memory.
private final class Ballast: Codable, Sendable, Equatable {
    static let count = Mutex(0)
    let text: String

    init(_ number: Int) {
        text = "\(number) " + String(repeating: "x", count: MemoryBoundTests.size)
        Self.count.withLock { $0 += 1 }
    }

    init(from decoder: any Decoder) throws {
        text = try decoder.singleValueContainer().decode(String.self)
        Self.count.withLock { $0 += 1 }
    }

    deinit { Self.count.withLock { $0 -= 1 } }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }

    static func == (left: Ballast, right: Ballast) -> Bool { left.text == right.text }
}

@Suite("Cache: the bound of memory", .oneMinute, .serialized)
struct MemoryBoundTests {
    fileprivate static let size = 20_000
    private let scene = CacheScene()

    @Test(arguments: [false, true])
    func `values that were read take no more memory than allowed, on the disk or not`(_ isInMemory: Bool) async throws {
        var configuration = scene.configuration(inMemory: isInMemory)
        configuration.memoryBytesMaximum = 1 << 20
        let cache = try LarderCache(configuration)
        for number in 0..<400 {
            let resource = Resource<Ballast>("ballast", ["number": "\(number)"]) { _ in .value(Ballast(number)) }
            _ = try await cache.value(resource)
        }
        // Assembled values take up to a quarter on top, and without a disk the rows as much again.
        let allowed = (1 << 20) * 5 / 4
        #expect(Ballast.count.withLock { $0 } * Self.size <= allowed)
        #expect(cache.memoryCost <= allowed + (isInMemory ? 1 << 20 : 0))
    }

    @Test(arguments: [false, true])
    func `rows in memory are counted and bounded, and their memory is given back`(_ isInMemory: Bool) async throws {
        var configuration = scene.configuration(inMemory: isInMemory)
        configuration.memoryBytesMaximum = 1 << 20
        let cache = try LarderCache(configuration)
        for number in 0..<100 {
            var resource = Resource<Ballast>("ballast", ["number": "\(number)"]) { _ in .value(Ballast(number)) }
            resource.isMemoryOnly = true
            _ = try await cache.value(resource)
        }
        let core = cache.core
        let store = core.memoryRows.store
        let rows = try Int(store.statistics().bytes)
        #expect(rows > Self.size && rows <= (isInMemory ? 1 << 20 : 1 << 18))
        #expect(cache.memoryCost >= rows + core.entities.cost)
        cache.trimMemory(toBytes: 0)
        #expect(try store.read { try $0.database.integer("PRAGMA freelist_count") } == 0)
    }

    @Test func `a list costs what it holds, also after its items have changed one by one`() async throws {
        let cache = try scene.cache(inMemory: true)
        let ids = (0..<20).map { "\($0)" }
        let list = Resource<EntityList<Note>>.list("notes", of: Note.self) { _ in
            .value(EntityList(ids.map { Note(id: $0, text: "", revision: 1) }))
        }
        _ = try await cache.value(list)
        let before = cache.core.nodes.cost
        let text = String(repeating: "x", count: Self.size)
        func change(to text: String, _ revision: Int64) async throws {
            for id in ids {
                try await cache.update { $0.put(Note(id: id, text: text, revision: revision)) }
                _ = try await cache.value(list, .cacheOnly)
            }
        }
        try await change(to: text, 2)
        #expect(cache.core.nodes.cost >= before + ids.count * Self.size)
        try await change(to: "", 3)
        #expect(cache.core.nodes.cost == before)
    }
}

import Foundation
import LarderEvents
import LarderMemory
import LarderStorage
import LarderTesting
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Local queries", .oneMinute)
struct EntityQueryTests {
    private let scene = CacheScene()

    private func cache() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.operations = [MemoEdit.operation]
        return try LarderCache(configuration)
    }

    private func fill(_ cache: LarderCache, _ count: Int) async throws {
        try await cache.update { update in
            for number in 0..<count {
                update.put(Memo("m\(number)", title: "number \(number)", rank: number % 10, pages: number))
            }
        }
    }

    /// The number of entities that were read and decoded.
    private func decoded(_ cache: LarderCache) -> Int { cache.core.entities.keys.count }

    @Test func `an index reads only what it finds, and a limit only the first of its order`() async throws {
        var cache = try cache()
        try await fill(cache, 400)
        _ = try await cache.entities(Memo.self).limit(1).values()
        cache = try self.cache()
        let found = try await cache.entities(Memo.self).where(\.rank, .equal(3)).sorted(by: \.pages).values()
        #expect(found.map(\.pages) == Array(stride(from: 3, to: 400, by: 10)))
        #expect(decoded(cache) == 40)
        let first = try await cache.entities(Memo.self).sorted(by: \.rank, descending: true).limit(2).values()
        #expect(first.map(\.rank) == [9, 9])
        #expect(decoded(cache) == 42)
    }

    @Test(arguments: [0, 1, 7, 64, 399, 400, .max])
    func `a limit is that of the whole order, however many entities are looked at`(_ limit: Int) async throws {
        let cache = try cache()
        try await cache.update { update in
            for number in 0..<400 { update.put(Memo("m\(number)", title: "", pages: (number * 7_919) % 100)) }
        }
        let all = cache.entities(Memo.self).sorted(by: \.pages, descending: true)
        let expected = try await cache.entities(Memo.self).values()
            .sorted { $0.pages == $1.pages ? $0.id < $1.id : $0.pages > $1.pages }
        #expect(try await all.limit(limit).values() == Array(expected.prefix(limit)))
    }

    @Test(arguments: [Int.max, Int.max / 8])
    func `a limit above the number of all entities finds all, with and without an index`(_ limit: Int) async throws {
        let cache = try cache()
        try await fill(cache, 20)
        let memos = cache.entities(Memo.self)
        #expect(try await memos.where(\.rank, .equal(3)).limit(limit).count() == 2)
        #expect(try await memos.where(\.pages, .equal(3)).limit(limit).count() == 1)
        let sorted = try await memos.sorted(by: \.rank).limit(limit).values()
        #expect(sorted.compactMap(\.rank) == (0..<20).map { $0 / 2 })
    }

    @Test
    func `entities that were stored before a query are indexed by it, and an index of another version is replaced`()
        async throws
    {
        let cache = try cache()
        try await fill(cache, 20)
        let disk = try #require(cache.core.disk)
        try EntityQuery<Memo>.buildIndices(["color", "removed"], disk)
        #expect(try await cache.entities(Memo.self).where(\.rank, .equal(4)).count() == 2)
        #expect(try disk.read { try $0.indices(ofType: Memo.entityType) } == ["color", "rank", "weight", "=text"])
        try await cache.update { $0.put(Memo("m4", rank: 5)) }
        #expect(try await cache.entities(Memo.self).where(\.rank, .equal(4)).values().map(\.id) == ["m14"])
    }

    @Test func `a query that reads all entities puts them into memory with their stamps`() async throws {
        var cache = try cache()
        try await cache.update { update in
            update.put(Memo("7", rank: 1))
            update.put(Memo("8", rank: 1))
        }
        try await cache.update { $0.invalidate(Memo.self, "8") }
        let keys = ["7", "8"].map { Memo.key($0) }
        let before = keys.map { cache.core.entities[$0]?.place }
        cache.close()
        cache = try self.cache()
        #expect(try await cache.entities(Memo.self).values().count == 2)
        let after = keys.map { cache.core.entities[$0]?.place }
        #expect(after.map { $0?.asked } == before.map { $0?.asked } && after[0]?.asked != .never)
        #expect(keys.map { cache.core.entities[$0]?.isInvalidated } == [false, true])
        cache.close()
    }

    @Test func `a removed entity leaves no text behind`() async throws {
        let cache = try cache()
        _ = try await cache.entities(Memo.self).values()
        try await cache.update { $0.put(Memo("a", title: "Quetzalcoatl")) }
        #expect(try await cache.entities(Memo.self).matching("quetzal").count() == 1)
        try await cache.update { $0.remove(Memo.self, "a", deletedInVersion: 3) }
        let disk = try #require(cache.core.disk)
        let search = DiskSearch(type: Memo.entityType, conditions: [.words(["quetzal"])])
        #expect(try disk.read { try $0.search(search) }?.ids == [])
    }

    @Test func `under a transform nothing is indexed, and queries find the same`() async throws {
        var configuration = scene.configuration()
        configuration.editStore { $0.transform = MaskingTransform() }
        let cache = try LarderCache(configuration)
        try await cache.update { $0.put(Memo("a", title: "Quetzalcoatl", rank: 1)) }
        #expect(try await cache.entities(Memo.self).matching("quetzal").where(\.rank, .equal(1)).count() == 1)
        #expect(try #require(cache.core.disk).read { try $0.indices(ofType: Memo.entityType) } == [])
        cache.close()
        for name in try FileManager.default.subpathsOfDirectory(atPath: scene.path) {
            let content = FileManager.default.contents(atPath: scene.path + "/" + name) ?? Data()
            #expect(content.range(of: Data("quetzal".utf8)) == nil, "\(name)")
        }
    }

    @Test func `a commit while a query runs neither repeats an entity nor leaves one out`() async throws {
        let cache = try cache()
        try await cache.update { update in for rank in 0..<100 { update.put(Memo("m\(rank)", rank: rank)) } }
        let other = try self.cache()
        let hasCommitted = Mutex(false)
        let query = cache.entities(Memo.self).where { memo in
            let isFirst = hasCommitted.withLock { known in
                defer { known = true }
                return !known
            }
            if isFirst {
                // Another process stores one that comes before all others, and moves their places.
                var update = CacheUpdate()
                update.put(Memo("m100", rank: 100))
                #expect(throws: Never.self) { try other.core.commit(update) }
            }
            return ["m100", "m81", "m50", "m0"].contains(memo.id)
        }
        let found = try await query.sorted(by: \.rank, descending: true).limit(3).values()
        #expect(found.map(\.id) == ["m100", "m81", "m50"])
    }

    @Test func `what must not touch the disk is found`() async throws {
        let cache = try cache()
        try await fill(cache, 3)
        var secret = Resource<Memo>.entity("secret") { _ in .value(Memo("secret", rank: 2)) }
        secret.isMemoryOnly = true
        _ = try await cache.value(secret)
        #expect(try await cache.entities(Memo.self).where(\.rank, .equal(2)).values().map(\.id) == ["m2", "secret"])
    }

    @Test func `a live query shows each change of its result, pending ones and rejections too`() async throws {
        let cache = try cache()
        try await fill(cache, 3)
        let seen = SequenceRecorder(cache.entities(Memo.self).where(\.color, .equal(.blue)).updates)
        await seen.wait { $0.last?.isEmpty ?? false }
        try await cache.update { $0.put(Memo("b", color: .blue)) }
        await seen.wait { $0.last?.map(\.id) == ["b"] }
        let edit = MemoEdit(id: "m1", memo: Memo("m1", color: .blue))
        let operation = try #require(try cache.enqueue(edit, MemoEdit.operation))
        await seen.wait { $0.last?.map(\.id) == ["b", "m1"] }
        try cache.outbox.drop(operation)
        await seen.wait { $0.last?.map(\.id) == ["b"] }
        cache.close()
        await seen.waitForEnd()
    }

    @Test func `a live query is not run by other types, and its end leaves no observer`() async throws {
        let cache = try cache()
        let runs = Atomic<Int>(0)
        let query = cache.entities(Memo.self).where { _ in
            runs.add(1, ordering: .relaxed)
            return true
        }
        try await fill(cache, 1)
        do {
            var updates = query.updates.makeAsyncIterator()
            #expect(try await updates.next()?.count == 1)
            try await cache.update { $0.put(Note(id: "1", text: "")) }
            try await cache.update { $0.put(Memo("n")) }
            #expect(try await updates.next()?.count == 2)
            #expect(runs.load(ordering: .relaxed) == 3)
        }
        #expect(cache.core.entityObservers.isEmpty)
        try await cache.update { $0.put(Memo("o")) }
        #expect(runs.load(ordering: .relaxed) == 3)
    }
}

import LarderResources
import LarderStorage
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Lists: what a change costs", .oneMinute)
struct ListCostTests {
    let scene = CacheScene()

    private static func note(_ number: Int) -> Note {
        Note(id: "note_\(1_000_000 + number)", text: "Text", revision: 1)
    }

    private func timeline(_ count: Int) -> PagedResource<Note> {
        PagedResource<Note>("notes", pageSize: count) { _ in
            .value(EntityList((0..<count).reversed().map(Self.note), nextCursor: "older"))
        }
    }

    @Test(arguments: [100, 1_000, 10_000])
    func `a change of a timeline writes as many rows at every length`(_ count: Int) async throws {
        var configuration = scene.configuration()
        configuration.memoryEntriesMaximum = 50_000
        let cache = try LarderCache(configuration)
        var feed = timeline(count)
        feed.itemsMaximum = 50_000
        try await cache.timeline(feed).refresh()
        let key = feed.key
        let disk = try #require(cache.disk)
        func rows(_ change: (inout CacheUpdate) -> Void) throws -> Int64 {
            let before = try disk.rowChanges()
            try cache.updateBlocking(change)
            return try disk.rowChanges() - before
        }
        // The entity with its payload, the list with its payload, the member, and the totals of both.
        #expect(try rows { $0.insertNewest(Self.note(count), in: key) } <= 8)
        #expect(try rows { $0.insert(Self.note(count + 1), in: key, isNew: true) { $0 > $1 } } <= 8)
        let middle = Self.note(count / 2).id
        #expect(try rows { $0.remove(Note.self, middle, deletedInVersion: 2) } <= 8)
        #expect(try rows { $0.edit(key) { $0.swapAt(0, 5) } } <= 12)
        #expect(try rows { $0.invalidate(key) } <= 2)
        // Unconfirmed items of this device do not add up either.
        for number in 0..<60 {
            let new = Self.note(count + 2 + number)
            #expect(try rows { $0.insert(new, in: key, isNew: true, isOwn: true) { $0 > $1 } } <= 8)
        }
        let shown = try await cache.timeline(feed, .cacheOnly).snapshot()
        #expect(shown.items.count == count + 61 && !shown.items.contains { $0.id == middle })
        let again = try LarderCache(configuration)
        let stored = try await again.timeline(feed, .cacheOnly).snapshot()
        #expect(stored.items.map(\.id) == shown.items.map(\.id))
    }

    @Test func `a deleted entity leaves every list, whether the list is on disk, in memory only, or in both`()
        async throws
    {
        let cache = try scene.cache()
        func list(_ name: String, _ isMemoryOnly: Bool) -> Resource<EntityList<Note>> {
            var list = Resource<EntityList<Note>>.list(name) { _ in .value(EntityList((0..<5).map(Self.note))) }
            list.isMemoryOnly = isMemoryOnly
            return list
        }
        let lists = [list("a", false), list("b", true), list("c", false)]
        for list in lists { _ = try await cache.value(list) }
        try cache.disk?.write { transaction throws in try transaction.remove(.query(QueryKey("c"))) }
        let cold = try scene.cache()
        try await cache.update { update in
            update.remove(Note.self, Self.note(2).id, deletedInVersion: 2)
            update.edit(QueryKey("a")) { $0.insert(Note.key(Self.note(3).id), at: 0) }
            update.remove(Note.self, Self.note(3).id, deletedInVersion: 2)
        }
        for list in lists {
            let ids = try await cache.value(list, .cacheOnly).items.map(\.id)
            #expect(ids == [0, 1, 4].map { Self.note($0).id }, "\(list.key)")
        }
        #expect(try await cold.value(lists[0], .cacheOnly).items.count == 3)
    }
}

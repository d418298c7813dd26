import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@Suite("Timelines: inserted items", .oneMinute)
struct NewestItemsTests {
    let scene = CacheScene()
    let source = PageSource()

    private func started(_ cache: LarderCache) async throws -> PagedResource<Note> {
        let feed = source.resource()
        source.prepare([3, 2, 1], next: "after 1")
        try await cache.timeline(feed).refresh()
        scene.clock.advance(by: .seconds(1))
        return feed
    }

    @Test func `items of one update are inserted at the front in its order`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { update in
            for number in 4...6 { update.insertNewest(Note(number), in: feed.key) }
            update.put(Note(2, "edited", revision: 2))
            update.insertNewest(Note(7), in: feed.key, isOwn: true)
        }
        #expect(try await cache.line(feed) == "7 6 5 4 3 2 1")
        #expect(try await scene.cache().line(feed) == "7 6 5 4 3 2 1")
    }

    @Test func `an inserted item does not stay because the clock was set back`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { update in update.insertNewest(Note(4), in: feed.key) }
        scene.clock.set(wall: scene.clock.now - .seconds(3_600))
        scene.clock.advance(by: .seconds(1))
        source.prepare([3, 2, 1], next: "after 1")
        try await cache.timeline(feed).refresh()
        #expect(try await cache.line(feed) == "3 2 1")
    }

    @Test func `a list with an item inserted between others is not confirmed by a validator`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        source.prepare([5, 3, 1], next: "after 1", validator: "v")
        try await cache.timeline(feed).refresh()
        try await cache.update { update in
            update.insert(Note(4), in: feed.key, isNew: true) { (Int($0) ?? 0) > (Int($1) ?? 0) }
        }
        #expect(try await cache.line(feed) == "5 4 3 1")
        // A replica may not have the item yet, so that the list differs from what the validator names.
        for _ in 0..<2 {
            scene.clock.advance(by: .seconds(5))
            source.prepare([5, 3, 1], next: "after 1", validator: "v")
            try await cache.timeline(feed).refresh()
            #expect(try await cache.line(feed) == "5 4 3 1")
            #expect(source.requests.last?.validator == nil)
        }
    }

    @Test func `a list with an item inserted behind the others is not confirmed by a validator`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        source.prepare([5, 3], validator: "v")
        try await cache.timeline(feed).refresh()
        try await cache.update { update in
            update.insert(Note(1), in: feed.key, isNew: true) { (Int($0) ?? 0) > (Int($1) ?? 0) }
        }
        // A replica may not have the item yet. If it was deleted, "not modified" would keep it for ever.
        for _ in 0..<2 {
            scene.clock.advance(by: .seconds(5))
            source.prepare([5, 3], validator: "v")
            try await cache.timeline(feed).refresh()
            #expect(try await cache.line(feed) == "5 3 1 .")
            #expect(source.requests.last?.validator == nil)
        }
    }

    /// A change feed with one change.
    ///
    /// - Parameter during: runs before its page is answered.
    private func changes(
        _ apply: @escaping @Sendable (inout CacheUpdate) -> Void,
        during: @escaping @Sendable () async throws -> Void
    ) -> ChangeFeed {
        ChangeFeed(
            "test",
            read: { token throws(LarderError) in
                do { try await during() } catch { Issue.record(error) }
                let change = ChangeFeed.Change(EntityKey(type: Note.entityType, id: "2"), apply: apply)
                return ChangeFeed.Batch([change], nextToken: token)
            },
            present: { () throws(LarderError) in ChangeFeed.Batch(nextToken: "1") },
            invalidateAll: { _ in }
        )
    }

    @Test(arguments: [true, false])
    func `an item of a change feed that a later request has not brought is not inserted`(_ isLater: Bool) async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        let (scene, source) = (scene, source)
        let refresh = { @Sendable () async in
            source.prepare([3, 1], next: "after 1")
            do { try await cache.timeline(feed).refresh() } catch { Issue.record(error) }
            scene.clock.advance(by: .seconds(1))
        }
        let changes = changes { update in
            update.insert(Note(2, "edited", revision: 2), in: feed.key, isNew: false) { $0 > $1 }
        } during: {
            if isLater { await refresh() }
        }
        let sync = ChangeSync(changes, into: cache)
        try await sync.catchUp()
        if !isLater { await refresh() }
        try await sync.catchUp()
        #expect(try await cache.line(feed) == (isLater ? "3 1" : "3 2 1"))
        let shown = try await cache.timeline(feed, .cacheOnly).snapshot()
        #expect(shown.freshness == (isLater ? .stale(.invalidated) : .fresh))
    }

    @Test(arguments: [true, false])
    func `a page of a change feed does not bring back what was taken out since it was asked for`(_ isPage: Bool)
        async throws
    {
        let cache = try scene.cache()
        let feed = try await started(cache)
        let changes = changes { update in
            if isPage {
                update.insertPage([Note(4)], in: feed.key)
            } else {
                update.insertNewest(Note(4), in: feed.key)
            }
        } during: {
            try await cache.update { $0.insertNewest(Note(4), in: feed.key) }
            try await cache.update { update in update.edit(feed.key) { $0.removeAll { $0.id == "4" } } }
        }
        try await ChangeSync(changes, into: cache).catchUp()
        #expect(try await cache.line(feed) == "3 2 1")
    }

    @Test(arguments: [true, false])
    func `a page of a change feed may take an item out and put it back`(_ isPage: Bool) async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        let changes = changes { update in
            update.edit(feed.key) { $0.removeAll { $0.id == "2" } }
            if isPage {
                update.insertPage([Note(2)], in: feed.key)
            } else {
                update.insertNewest(Note(2), in: feed.key)
            }
        } during: {
        }
        try await ChangeSync(changes, into: cache).catchUp()
        #expect(try await cache.line(feed) == "2 3 1")
    }

    @Test(arguments: [true, false])
    func `a timeline that was asked for after a page of a change feed is stale with what it lacks`(_ isLater: Bool)
        async throws
    {
        let cache = try scene.cache()
        let feed = try await started(cache)
        let (scene, source) = (scene, source)
        let changes = changes { update in
            update.insertPage([Note(4)], in: feed.key)
        } during: {
            guard isLater else { return }
            scene.clock.advance(by: .seconds(1))
            // The server has deleted it.
            source.prepare([3, 2, 1], next: "after 1")
            try await cache.timeline(feed).refresh()
        }
        try await ChangeSync(changes, into: cache).catchUp()
        let shown = try await cache.timeline(feed, .cacheOnly).snapshot()
        #expect(shown.freshness == (isLater ? .stale(.invalidated) : .fresh))
    }

    @Test func `a page of a change feed keeps the age of the page behind its gap, however many edits came since`()
        async throws
    {
        let cache = try scene.cache()
        let feed = source.resource(pageSize: 80)
        source.prepare(Array((1...80).reversed()), next: "after 1")
        try await cache.timeline(feed).refresh()
        let before = try await cache.timeline(feed, .cacheOnly).snapshot()
        scene.clock.advance(by: .seconds(1))
        let changes = changes { update in
            update.insertPage([Note(100)], in: feed.key, olderCursor: "after 100", hasGap: true)
        } during: {
            try await cache.update { update in update.edit(feed.key) { $0.removeLast(70) } }
        }
        try await ChangeSync(changes, into: cache).catchUp()
        let shown = try await cache.timeline(feed, .cacheOnly).snapshot()
        #expect(shown.line == "100 | 80 79 78 77 76 75 74 73 72 71")
        #expect(shown.freshness == .stale(.invalidated))
        #expect(shown.pages.last?.validatedAt == before.validatedAt)
        #expect(shown.pages.last?.freshness == .stale(.invalidated))
    }

    @Test func `an item that one update inserts and deletes is not shown`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { update in
            update.insertNewest(Note(4), in: feed.key)
            update.remove(Note.self, "4", deletedInVersion: 2)
            update.insertNewest(Note(5), in: feed.key)
            update.remove(Note.self, "3", deletedInVersion: 2)
        }
        #expect(try await cache.line(feed) == "5 2 1")
        #expect(try await scene.cache().line(feed) == "5 2 1")
    }

    @Test func `bulk inserts mark a list stale instead of growing it`()
        async throws
    {
        let cache = try scene.cache()
        let feed = try await started(cache)
        for start in stride(from: 4, to: 2_004, by: 500) {
            try await cache.update { update in
                for number in start..<(start + 500) { update.insertNewest(Note(number), in: feed.key) }
            }
        }
        let seen = try await cache.timeline(feed, .cacheOnly).snapshot()
        #expect(seen.items.count == 103)
        #expect(seen.freshness == .stale(.invalidated))
        // The reader gets the newest page, and a gap before the earlier items.
        scene.clock.advance(by: .seconds(1))
        source.prepare([2_003, 2_002, 2_001], next: "after 2001")
        try await cache.timeline(feed).refresh()
        let line = try await cache.line(feed)
        #expect(line.hasPrefix("2003 2002 2001 | 103 102") && line.hasSuffix(" 3 2 1"), "\(line)")
        // The items behind the gap were not confirmed again.
        let shown = try await cache.timeline(feed, .cacheOnly).snapshot()
        #expect(shown.freshness(of: 0..<3) == .fresh && shown.freshness == .stale(.invalidated))
    }

    @Test func `an own item is inserted at the front of a full list too`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { update in
            for number in 4..<500 { update.insertNewest(Note(number), in: feed.key) }
            update.insertNewest(Note(1_000), in: feed.key, isOwn: true)
        }
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().items.first?.id == "1000")
    }

    @Test func `a page requested before the bulk inserts does not hide missing items`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        let timeline = cache.timeline(feed)
        let refresh = Task { try await timeline.refresh() }
        await source.script.waitForRequests(2)
        try await cache.update { update in
            for number in 4..<500 { update.insertNewest(Note(number), in: feed.key) }
        }
        source.answer(1, [3, 2, 1], next: "after 1")
        try await refresh.value
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().freshness == .stale(.invalidated))
    }

    @Test func `an item that one update inserts and takes out is not shown`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { update in
            update.insertNewest(Note(4), in: feed.key)
            update.edit(feed.key) { keys in keys.removeAll { $0.id == "4" } }
            update.insertNewest(Note(5), in: feed.key)
        }
        #expect(try await cache.line(feed) == "5 3 2 1")
        #expect(try await scene.cache().line(feed) == "5 3 2 1")
    }

    @Test func `a change of the order does not confirm an inserted item`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { update in
            update.insertNewest(Note(5), in: feed.key)
            update.insertNewest(Note(4), in: feed.key)
        }
        try await cache.update { $0.edit(feed.key) { $0 = Self.sorted($0) } }
        #expect(try await cache.line(feed) == "5 4 3 2 1")
        source.prepare([3, 2, 1], next: "after 1")
        try await cache.timeline(feed).refresh()
        #expect(try await cache.line(feed) == "5 4 3 2 1")
        scene.clock.advance(by: .seconds(61))
        source.prepare([3, 2, 1], next: "after 1")
        try await cache.timeline(feed).refresh()
        #expect(try await cache.line(feed) == "3 2 1")
    }

    private static func sorted(_ keys: [EntityKey]) -> [EntityKey] {
        // Boundaries and gaps stay where they are, behind the items above them.
        keys.sorted { (Int($0.id) ?? 0) > (Int($1.id) ?? 0) }
    }

    @Test func `a list that was reordered before its first page is loaded to its end`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed, .cacheOnly)
        try await cache.update { update in
            for number in [1, 2, 3, 4, 5, 6, 8, 7, 9] { update.insertNewest(Note(number), in: feed.key) }
        }
        try await cache.update { $0.edit(feed.key) { $0 = Self.sorted($0) } }
        source.prepare([9, 8, 7], next: "after 7")
        try await timeline.refresh()
        source.prepare([6, 5, 4], next: "after 4")
        source.prepare([3, 2, 1])
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await timeline.loadOlder() == .finished)
        #expect(source.cursors == ["newest", "after 7", "after 4"])
        #expect(try await cache.line(feed) == "9 8 7 6 5 4 3 2 1 .")
    }

    @Test func `a page is shown in one piece while items that it does not contain settle`() async throws {
        let cache = try scene.cache()
        let feed = source.resource(pageSize: 5)
        let timeline = cache.timeline(feed, .cacheOnly)
        try await cache.update { update in for number in 1...3 { update.insertNewest(Note(number), in: feed.key) } }
        // Messages between were missed.
        try await cache.update { update in for number in 8...9 { update.insertNewest(Note(number), in: feed.key) } }
        scene.clock.advance(by: .seconds(1))
        source.prepare([9, 8, 7, 6, 5], next: "after 5")
        try await timeline.refresh()
        #expect(try await cache.line(feed) == "9 8 7 6 5")
        source.prepare([4, 3, 2, 1])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(try await cache.line(feed) == "9 8 7 6 5 4 3 2 1 .")
    }

    @Test func `a page that overlaps the list is shown in one piece while items that it does not contain settle`()
        async throws
    {
        let cache = try scene.cache()
        let feed = try await started(cache)
        for numbers in [[4], [8, 9]] {
            try await cache.update { update in for number in numbers { update.insertNewest(Note(number), in: feed.key) }
            }
        }
        #expect(try await cache.line(feed) == "9 8 4 3 2 1")
        scene.clock.advance(by: .seconds(1))
        source.prepare([9, 8, 7, 6, 5, 3, 2], next: "after 2")
        try await cache.timeline(feed).refresh()
        #expect(try await cache.line(feed) == "9 8 7 6 5 3 2 1")
    }

    @Test func `an own item is shown although a page has other items in its place`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { $0.insertNewest(Note(4), in: feed.key, isOwn: true) }
        try await cache.update { update in for number in 8...9 { update.insertNewest(Note(number), in: feed.key) } }
        scene.clock.advance(by: .seconds(1))
        source.prepare([9, 8, 7, 6, 5, 3, 2], next: "after 2")
        try await cache.timeline(feed).refresh()
        let items = try await cache.timeline(feed, .cacheOnly).snapshot().items
        #expect(items.contains { $0.id == "4" })
    }
}

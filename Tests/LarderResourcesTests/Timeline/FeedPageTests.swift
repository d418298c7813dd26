import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

/// The server's order cannot be computed: the numbers are names only.
@Suite("Timelines: pages of a change feed", .oneMinute)
struct FeedPageTests {
    let scene = CacheScene()
    let source = PageSource()

    private func started(_ cache: LarderCache) async throws -> PagedResource<Note> {
        let feed = source.resource()
        source.prepare([3, 2, 1], next: "after 1")
        try await cache.timeline(feed).refresh()
        scene.clock.advance(by: .seconds(1))
        return feed
    }

    private func insert(
        _ numbers: [Int],
        _ cache: LarderCache,
        _ feed: PagedResource<Note>,
        after cursor: String? = nil,
        hasGap: Bool = false
    ) async throws {
        try await cache.update {
            $0.insertPage(numbers.map { Note($0) }, in: feed.key, olderCursor: cursor, hasGap: hasGap)
        }
    }

    /// The list, which must equal that of a new process.
    private func line(_ cache: LarderCache, _ feed: PagedResource<Note>) async throws -> String {
        let line = try await cache.line(feed)
        #expect(try await scene.cache().line(feed) == line)
        return line
    }

    @Test func `an own item is not shown above earlier ones of others`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { $0.insertNewest(Note(9), in: feed.key, isOwn: true) }
        // Others have written these before it, and the feed brings them one by one.
        for number in [4, 5] { try await cache.update { $0.insertNewest(Note(number), in: feed.key) } }
        #expect(try await line(cache, feed) == "9 5 4 3 2 1")
        // They may be later ones as well.
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().freshness == .stale(.invalidated))
    }

    @Test func `an event about an own item says where it is`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await cache.update { $0.insertNewest(Note(9), in: feed.key, isOwn: true) }
        try await cache.update { update in
            for number in [4, 5, 9] { update.insertNewest(Note(number), in: feed.key) }
        }
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().freshness == .fresh)
        try await cache.update { $0.insertNewest(Note(6), in: feed.key) }
        #expect(try await line(cache, feed) == "6 9 5 4 3 2 1")
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().freshness == .fresh)
    }

    @Test func `a page of the feed moves own items to their places, and others stay in front`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        for number in [8, 9] { try await cache.update { $0.insertNewest(Note(number), in: feed.key, isOwn: true) } }
        try await insert([5, 8, 4], cache, feed)
        #expect(try await line(cache, feed) == "9 5 8 4 3 2 1")
        try await insert([7, 9, 6], cache, feed)
        #expect(try await line(cache, feed) == "7 9 6 5 8 4 3 2 1")
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().freshness == .fresh)
    }

    @Test func `a page that comes again changes nothing, and one that overlaps inserts what is missing`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await insert([5, 4], cache, feed)
        try await insert([7, 6], cache, feed)
        try await insert([5, 4], cache, feed)
        #expect(try await line(cache, feed) == "7 6 5 4 3 2 1")
        try await insert([8, 7, 16, 6, 15, 5], cache, feed, after: "after 5", hasGap: true)
        #expect(try await line(cache, feed) == "8 7 16 6 15 5 4 3 2 1")
    }

    @Test func `a page before which items are missing leaves a gap that is filled from its cursor`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await insert([9, 8], cache, feed, after: "after 8", hasGap: true)
        #expect(try await line(cache, feed) == "9 8 | 3 2 1")
        // A second absence.
        try await insert([19, 18], cache, feed, after: "after 18", hasGap: true)
        #expect(try await line(cache, feed) == "19 18 | 9 8 | 3 2 1")
        let timeline = cache.timeline(feed, .cacheOnly)
        let gaps = try await timeline.snapshot().segments.compactMap(\.gap)
        source.prepare([6, 5, 3], next: "after 3")
        #expect(try await timeline.fill(gaps[1]) == .finished)
        source.prepare([14, 9, 8], next: "after 8 again")
        #expect(try await timeline.fill(gaps[0]) == .finished)
        #expect(source.cursors == ["newest", "after 8", "after 18"])
        #expect(try await line(cache, feed) == "19 18 14 9 8 6 5 3 2 1")
    }

    @Test func `a page without a cursor before which items are missing makes the timeline stale`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await insert([9, 8], cache, feed, hasGap: true)
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().freshness == .stale(.invalidated))
    }

    @Test func `a timeline begins with a page of the feed and is loaded to its end`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        try await insert([9, 8], cache, feed, after: "after 8", hasGap: true)
        #expect(try await line(cache, feed) == "9 8")
        source.prepare([7, 6])
        #expect(try await cache.timeline(feed, .cacheOnly).loadOlder() == .finished)
        #expect(source.cursors == ["after 8"])
        #expect(try await line(cache, feed) == "9 8 7 6 .")
    }

    @Test func `a refresh overlaps the items of the feed, and deletes those that it lacks`() async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        try await insert([6, 5, 4], cache, feed)
        scene.clock.advance(by: .seconds(1))
        source.prepare([7, 6, 4], next: "after 4")
        try await cache.timeline(feed).refresh()
        #expect(source.requests.last?.validator == nil)
        #expect(try await line(cache, feed) == "7 6 4 3 2 1")
    }

    @Test(arguments: [false, true])
    func `a refresh that began before the page of the feed removes nothing of it`(_ hasGap: Bool) async throws {
        let cache = try scene.cache()
        let feed = try await started(cache)
        let refresh = Task { try await cache.timeline(feed).refresh() }
        await source.script.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        try await insert([6, 5], cache, feed, after: "after 5", hasGap: hasGap)
        source.answer(1, [4, 3, 2], next: "after 2")
        try await refresh.value
        #expect(try await line(cache, feed) == (hasGap ? "6 5 | 3 2 1" : "6 5 4 3 2 1"))
    }
}

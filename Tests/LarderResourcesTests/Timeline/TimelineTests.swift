import LarderEvents
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Timelines", .oneMinute)
struct TimelineTests {
    let scene = CacheScene()
    let source = PageSource()

    /// The snapshot of a reader, which must equal that of a new process at every moment.
    private func line(_ cache: LarderCache, _ resource: PagedResource<Note>) async throws -> String {
        let line = try await cache.line(resource)
        #expect(try await scene.cache().line(resource) == line)
        return line
    }

    private func gaps(_ timeline: Timeline<Note>) async throws -> [Timeline<Note>.Gap] {
        try await timeline.snapshot().segments.compactMap { segment in
            guard case .gap(let gap) = segment else { return nil }
            return gap
        }
    }

    private func gap(_ timeline: Timeline<Note>) async throws -> Timeline<Note>.Gap {
        try #require(try await gaps(timeline).first)
    }

    @Test func `pages are merged until the end, and none is requested twice`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        #expect(try await line(cache, feed) == "–")
        let timeline = cache.timeline(feed)
        source.prepare([9, 8, 7], next: "after 7")
        // Without stored items the newest page is fetched first.
        #expect(try await timeline.loadOlder() == .more)
        #expect(try await line(cache, feed) == "9 8 7")
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await timeline.loadOlder() == .more)
        source.prepare([3])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(try await line(cache, feed) == "9 8 7 6 5 4 3 .")
        #expect(try await timeline.loadOlder() == .finished)
        // Loaded pages cost no request, also in another process.
        #expect(try await scene.cache().line(feed) == "9 8 7 6 5 4 3 .")
        #expect(source.cursors == ["newest", "after 7", "after 4"])
        // Only the newest page must come from the origin: older ones may come from caches on the way.
        #expect(source.requests.map(\.mustRevalidate) == [true, false, false])
        #expect(try await timeline.snapshot().completeness == .complete)
    }

    @Test func `a cold start shows stored items before any request`() async throws {
        let feed = source.resource()
        source.prepare([3, 2], next: "after 2")
        // A released cache ends its requests, so each one is held here.
        let caches = try (0..<3).map { _ in try scene.cache() }
        try await caches[0].timeline(feed).refresh()
        let fresh = SequenceRecorder(caches[1].timeline(feed).snapshots)
        #expect(await fresh.wait(for: 1).map(\.line) == ["3 2"])
        #expect(source.requests.count == 1)
        scene.clock.advance(by: .seconds(61))
        let seen = SequenceRecorder(caches[2].timeline(feed).snapshots)
        let first = try #require(await seen.wait(for: 1).first)
        #expect(first.line == "3 2" && first.freshness == .stale(.expired) && first.isRefreshing)
        // By now the list may be in memory: a slow reader gets the newest snapshot.
        #expect(first.source == .disk || first.source == .memory)
        await source.script.waitForRequests(2)
        source.answer(1, [3, 2], next: "after 2")
        let last = try #require(await seen.wait { $0.last?.freshness == .fresh }.last)
        #expect(last.line == "3 2" && !last.isRefreshing && seen.elements.count == 2)
        withExtendedLifetime(caches) {}
    }

    @Test func `a refresh costs one page, and new items are inserted at the front`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([6, 5, 4], next: "after 4")
        source.prepare([3, 2, 1], next: "after 1")
        try await timeline.refresh()
        try await timeline.loadOlder()
        scene.clock.advance(by: .seconds(1))
        source.prepare([7, 6, 5], next: "after 5")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "7 6 5 4 3 2 1")
        #expect(source.requests.count == 3)
        // An item in the range of the page that the page does not contain is removed.
        scene.clock.advance(by: .seconds(1))
        source.prepare([8, 6, 5], next: "after 5")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "8 6 5 4 3 2 1")
        source.prepare([0])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(source.cursors.last == "after 1")
    }

    @Test func `items that a refresh does not overlap stay behind a gap that is filled page by page`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([3, 2, 1])
        try await timeline.refresh()
        scene.clock.advance(by: .seconds(1))
        source.prepare([12, 11, 10], next: "after 10")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "12 11 10 | 3 2 1 .")
        #expect(try await cache.timeline(feed).snapshot().completeness == .gapped(1))
        let gap = try await gap(cache.timeline(feed))
        source.prepare([9, 8, 7], next: "after 7")
        #expect(try await timeline.fill(gap) == .more)
        #expect(try await line(cache, feed) == "12 11 10 9 8 7 | 3 2 1 .")
        // The gap exists in another process too, with the same identifier.
        let later = try scene.cache()
        let again = later.timeline(feed)
        #expect(try await self.gap(again) == gap)
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await again.fill(gap) == .more)
        source.prepare([3, 2, 1])
        #expect(try await again.fill(gap) == .finished)
        #expect(try await scene.cache().line(feed) == "12 11 10 9 8 7 6 5 4 3 2 1 .")
        #expect(try await again.fill(gap) == .finished)
        #expect(source.cursors == ["newest", "newest", "after 10", "after 7", "after 4"])
    }

    @Test func `a second gap is filled separately, and a page that spans both closes both`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        for first in [3, 9, 15] {
            source.prepare([first, first - 1], next: "after \(first - 1)")
            try await timeline.refresh()
            scene.clock.advance(by: .seconds(1))
        }
        #expect(try await line(cache, feed) == "15 14 | 9 8 | 3 2")
        let first = try await gap(timeline)
        source.prepare([13, 9, 8, 7, 3, 2, 1], next: "after 1")
        #expect(try await timeline.fill(first) == .finished)
        #expect(try await line(cache, feed) == "15 14 13 9 8 7 3 2 1")
        source.prepare([0])
        try await timeline.loadOlder()
        #expect(source.cursors.last == "after 1")
    }

    @Test func `items that a refresh does not overlap are dropped on request`() async throws {
        let cache = try scene.cache()
        var feed = source.resource()
        feed.dropsBehindGap = true
        let timeline = cache.timeline(feed)
        source.prepare([3, 2, 1])
        try await timeline.refresh()
        scene.clock.advance(by: .seconds(1))
        source.prepare([12, 11, 10], next: "after 10")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "12 11 10")
        source.prepare([9, 3], next: "after 3")
        try await timeline.loadOlder()
        #expect(try await line(cache, feed) == "12 11 10 9 3")
        #expect(source.cursors.last == "after 10")
    }

    @Test func `a page that is not modified renews times and nothing else`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([3, 2], next: "after 2", validator: "v1")
        try await timeline.refresh()
        source.prepare([1], validator: "w1")
        try await timeline.loadOlder()
        let before = try await timeline.snapshot()
        scene.clock.advance(by: .seconds(61))
        source.script.prepare(.notModified())
        try await timeline.refresh()
        let after = try await timeline.snapshot()
        #expect(source.requests.map(\.validator) == [nil, nil, "v1"])
        #expect(after.line == "3 2 1 ." && after.pages.map(\.freshness) == [.fresh, .stale(.expired)])
        #expect(after.times?.fetchedAt == before.times?.fetchedAt)
        #expect(after.times?.validatedAt == scene.clock.now)
        #expect(try await line(cache, feed) == "3 2 1 .")
    }

    @Test func `a newest page is not confirmed for an item that was modified since and was invalidated`() async throws {
        let cache = try scene.cache()
        let timeline = cache.timeline(source.resource())
        source.prepare([3, 2], validator: "v")
        try await timeline.refresh()
        try await cache.update { $0.invalidate(Note.self, "3") }
        source.script.prepare(.notModified())
        try await timeline.refresh()
        #expect(source.requests.last?.validator == "v")
        try await cache.update { update in
            update.modify(Note.self, "3") { $0.text = "a guess" }
            update.invalidate(Note.self, "3")
        }
        source.prepare([3, 2], validator: "v")
        try await timeline.refresh()
        #expect(source.requests.last?.validator == nil)
    }

    @Test func `a page that comes back identical changes nothing`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([3, 2], next: "after 2")
        try await timeline.refresh()
        source.prepare([1], next: "after 1")
        try await timeline.loadOlder()
        let seen = SequenceRecorder(timeline.snapshots)
        let before = try #require(await seen.wait(for: 1).first)
        scene.clock.advance(by: .seconds(5))
        source.prepare([3, 2], next: "after 2")
        try await timeline.refresh()
        let after = try await timeline.snapshot()
        #expect(after.times?.fetchedAt == before.times?.fetchedAt && after.times?.validatedAt == scene.clock.now)
        try await cache.update { $0.put(Note(2, "edited", revision: 2)) }
        await seen.wait { $0.last?.items.contains { $0.text == "edited" } ?? false }
        #expect(seen.elements.allSatisfy { $0.line == "3 2 1" })
        #expect(seen.elements.dropFirst().dropLast().allSatisfy { $0.difference.isEmpty })
        #expect(seen.elements.last?.difference.updates.map(\.id) == ["2"])
    }

    @Test func `an empty list and a list that became empty are both shown as empty`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([])
        try await timeline.refresh()
        #expect(try await line(cache, feed) == ".")
        #expect(try await timeline.loadOlder() == .finished)
        scene.clock.advance(by: .seconds(1))
        source.prepare([2, 1])
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "2 1 .")
        scene.clock.advance(by: .seconds(1))
        source.prepare([])
        try await timeline.refresh()
        #expect(try await line(cache, feed) == ".")
        #expect(try await timeline.snapshot().freshness == .fresh)
    }

    @Test func `an overlap of unconfirmed items alone does not close a gap`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([3, 2, 1])
        try await timeline.refresh()
        scene.clock.advance(by: .seconds(1))
        // Items before it were missed.
        try await cache.update { $0.insertNewest(Note(20), in: timeline.key, isOwn: true) }
        #expect(try await line(cache, feed) == "20 3 2 1 .")
        source.prepare([21, 20, 19], next: "after 19")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "21 20 19 | 3 2 1 .")
        // A page has confirmed the item, so it counts as overlap.
        scene.clock.advance(by: .seconds(1))
        source.prepare([22, 21, 20], next: "after 20")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "22 21 20 19 | 3 2 1 .")
    }

    @Test(arguments: [false, true])
    func `an item that an edit has put at the end stays there, until a page states its place`(_ hasPage: Bool)
        async throws
    {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([9, 8], next: "after 8")
        try await timeline.refresh()
        try await cache.update { update in
            update.put(Note(1))
            update.edit(feed.key) { $0.append(Note.key("1")) }
        }
        #expect(try await line(cache, feed) == "9 8 1")
        scene.clock.advance(by: .seconds(1))
        source.prepare([7, 6], next: "after 6")
        try await timeline.loadOlder()
        #expect(try await line(cache, feed) == "9 8 7 6 1")
        source.prepare(hasPage ? [5, 1, 0] : [5])
        try await timeline.loadOlder()
        #expect(try await line(cache, feed) == (hasPage ? "9 8 7 6 5 1 0 ." : "9 8 7 6 5 1 ."))
    }

    @Test func `an inserted item stays for a minute while replicas lag, and no longer`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([2, 1], validator: "v")
        try await timeline.refresh()
        try await cache.update { $0.insertNewest(Note(3), in: timeline.key, isOwn: true) }
        for _ in 0..<3 {
            scene.clock.advance(by: .seconds(10))
            source.prepare([2, 1], validator: "v")
            try await timeline.refresh()
            #expect(try await line(cache, feed) == "3 2 1 .")
        }
        scene.clock.advance(by: .seconds(31))
        source.prepare([2, 1], validator: "v")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "2 1 .")
        // A 304 would have kept the item.
        #expect(source.requests.allSatisfy { $0.validator == nil })
        source.script.prepare(.notModified())
        try await timeline.refresh()
        #expect(source.requests.last?.validator == "v")
    }

    @Test func `an inserted item stays when the reply has spent time in a shared cache`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([2, 1])
        try await timeline.refresh()
        try await cache.update { $0.insertNewest(Note(3), in: timeline.key, isOwn: true) }
        scene.clock.advance(by: .seconds(10))
        var reply = Fetched.value(source.page([2, 1], next: nil))
        reply.age = .seconds(200)
        source.script.prepare(reply)
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "3 2 1 .")
    }

    @Test func `an event about an item in the list does not move it`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([3, 2, 1])
        try await timeline.refresh()
        try await cache.update { $0.insertNewest(Note(2, "again", revision: 2), in: timeline.key) }
        #expect(try await line(cache, feed) == "3 2 1 .")
        #expect(try await timeline.snapshot().items.map(\.text) == ["", "again", ""])
        // In a list that was never fetched it is the first item, and is not confirmed.
        let other = PagedResource<Note>("other") { try await source.fetch($0) }
        try await cache.update { $0.insertNewest(Note(5), in: other.key) }
        let snapshot = try await cache.timeline(other, .cacheOnly).snapshot()
        #expect(snapshot.line == "5" && snapshot.freshness == .stale(.neverValidated))
        source.prepare([5, 4])
        #expect(try await cache.timeline(other).loadOlder() == .finished)
        #expect(try await cache.line(other) == "5 4 .")
    }

    @Test func `deletions, edits and gaps are combined`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([3, 2], next: "after 2")
        try await timeline.refresh()
        scene.clock.advance(by: .seconds(1))
        source.prepare([9, 8], next: "after 8")
        try await timeline.refresh()
        try await cache.update { $0.remove(Note.self, "8", deletedInVersion: 2) }
        #expect(try await line(cache, feed) == "9 | 3 2")
        // All items behind the gap are removed: the list ends with the gap.
        try await cache.update { update in
            update.remove(Note.self, "3", deletedInVersion: 2)
            update.remove(Note.self, "2", deletedInVersion: 2)
        }
        #expect(try await line(cache, feed) == "9")
        source.prepare([7, 3])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(source.cursors.last == "after 8")
        // A lagging replica contains the deleted item, which is not shown.
        #expect(try await line(cache, feed) == "9 7 .")
    }

    @Test func `the list keeps its maximum size, and dropped items can be loaded again`() async throws {
        let cache = try scene.cache()
        var feed = source.resource()
        feed.itemsMaximum = 6
        let timeline = cache.timeline(feed)
        source.prepare([9, 8, 7], next: "after 7")
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        try await timeline.loadOlder()
        #expect(try await timeline.loadOlder() == .full)
        scene.clock.advance(by: .seconds(1))
        source.prepare([11, 10, 9], next: "after 9")
        try await timeline.refresh()
        #expect(try await line(cache, feed) == "11 10 9 8 7")
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await timeline.loadOlder() == .more)
        #expect(source.cursors.last == "after 7")
        #expect(try await line(cache, feed) == "11 10 9 8 7 6 5 4")
    }

    /// Removes an item from the store of a closed cache.
    private func evict(_ id: String) throws {
        let store = try DiskStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        try store.remove(Note.key(id))
    }

    @Test func `an evicted item leaves a gap, which is filled`() async throws {
        let feed = source.resource()
        source.prepare([6, 5, 4], next: "after 4")
        source.prepare([3, 2, 1])
        do {
            let cache = try scene.cache()
            try await cache.timeline(feed).refresh()
            try await cache.timeline(feed).loadOlder()
            cache.close()
            try evict("2")
        }
        let cache = try scene.cache()
        #expect(try await cache.line(feed) == "6 5 4 3 | 1 .")
        let timeline = cache.timeline(feed)
        source.prepare([3, 2, 1])
        #expect(try await timeline.fill(gap(timeline)) == .finished)
        #expect(source.cursors.last == "after 4")
        #expect(try await line(cache, feed) == "6 5 4 3 2 1 .")
    }

    @Test func `what an evicted item leaves below a gap is filled with that gap`() async throws {
        let feed = source.resource()
        source.prepare([6, 5, 4], next: "after 4")
        source.prepare([16, 15, 14], next: "after 14")
        do {
            let cache = try scene.cache()
            for _ in 0..<2 { try await cache.timeline(feed).refresh() }
            cache.close()
            try evict("5")
        }
        let cache = try scene.cache()
        #expect(try await cache.line(feed) == "16 15 14 | 6 | 4")
        let timeline = cache.timeline(feed)
        let gaps = try await gaps(timeline)
        #expect(Set(gaps.map(\.id)).count == 2)
        source.prepare([13, 12, 11], next: "after 11")
        #expect(try await timeline.fill(gaps[1]) == .more)
        source.prepare([7, 6, 5], next: "after 5")
        #expect(try await timeline.fill(gaps[1]) == .finished)
        #expect(source.cursors.suffix(2) == ["after 14", "after 11"])
        #expect(try await line(cache, feed) == "16 15 14 13 12 11 7 6 5 4")
    }
}

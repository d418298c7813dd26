import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Timelines: validator and age of each page", .oneMinute)
struct TimelinePageTests {
    let scene = CacheScene()
    let source = PageSource()

    /// Three pages of three items, loaded ten seconds apart.
    private func loaded(_ cache: LarderCache, validators: Bool = true) async throws -> Timeline<Note> {
        // A reader that asks for nothing by itself.
        let timeline = cache.timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
        source.prepare([9, 8, 7], next: "after 7", validator: validators ? "v9" : nil)
        source.prepare([6, 5, 4], next: "after 4", validator: validators ? "v6" : nil)
        source.prepare([3, 2, 1], next: "after 1", validator: validators ? "v3" : nil)
        try await timeline.refresh()
        for _ in 0..<2 {
            scene.clock.advance(by: .seconds(10))
            try await timeline.loadOlder()
        }
        return timeline
    }

    /// The pages in short: the number of items and the age in seconds.
    private func pages(_ timeline: Timeline<Note>) async throws -> [String] {
        try await timeline.snapshot().pages.map { page in
            let age = page.times.age(at: timeline.core.now()).map { "\($0.components.seconds)" } ?? "?"
            return "\(page.range.count):\(age)"
        }
    }

    @Test func `each page has an age of its own, also in another process`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        #expect(try await pages(timeline) == ["3:20", "3:10", "3:0"])
        #expect(try await pages(try scene.cache().timeline(source.resource(), .cacheOnly)) == ["3:20", "3:10", "3:0"])
        let shown = try await timeline.snapshot()
        #expect(shown.pages.map(\.range) == [0..<3, 3..<6, 6..<9])
        #expect(shown.freshness == .fresh)
    }

    @Test func `a refresh of the newest page does not make older pages fresh`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        scene.clock.advance(by: .seconds(55))
        source.prepare([9, 8, 7], next: "after 7", validator: "v9")
        try await timeline.refresh()
        var shown = try await timeline.snapshot()
        #expect(shown.pages.map(\.freshness) == [.fresh, .stale(.expired), .fresh])
        #expect(shown.freshness == .stale(.expired))
        #expect(shown.freshness(of: 0..<3) == .fresh && shown.freshness(of: 7..<9) == .fresh)
        #expect(shown.freshness(of: 2..<4) == .stale(.expired))
        // The list as a resource says the same.
        #expect(try await cache.snapshot(source.resource().list, .cacheOnly).freshness == .stale(.expired))
        // A confirmation renews no other page either.
        scene.clock.advance(by: .seconds(61))
        source.script.prepare(.notModified())
        try await timeline.refresh()
        shown = try await timeline.snapshot()
        #expect(shown.pages.map(\.freshness) == [.fresh, .stale(.expired), .stale(.expired)])
    }

    @Test func `the notice about a timeline has the age of its oldest page`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        let now = scene.clock.now
        #expect(try await timeline.snapshot().notice(at: now) == .updated(.seconds(20)))
        scene.clock.advance(by: .seconds(55))
        source.prepare([9, 8, 7], next: "after 7", validator: "v9")
        try await timeline.refresh()
        let shown = try await timeline.snapshot()
        #expect(shown.notice(at: scene.clock.now).text == "May be outdated, updated 1 min ago")
        #expect(shown.notice(at: scene.clock.now, isOffline: true) == .offline(.seconds(65)))
    }

    @Test func `items that leave the newest page keep their age`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        source.prepare([11, 10, 9], next: "after 9")
        try await timeline.refresh()
        #expect(try await pages(timeline) == ["3:0", "2:20", "3:10", "3:0"])
        // Small pages are joined, with the age of the older one.
        scene.clock.advance(by: .seconds(1))
        source.prepare([12, 11, 10], next: "after 10")
        try await timeline.refresh()
        #expect(try await pages(timeline) == ["3:0", "3:21", "3:11", "3:1"])
        #expect(try await cache.line(source.resource()) == "12 11 10 9 8 7 6 5 4 3 2 1")
    }

    @Test func `items behind a new gap keep their age`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        source.prepare([20, 19, 18], next: "after 18")
        try await timeline.refresh()
        #expect(try await cache.line(source.resource()) == "20 19 18 | 9 8 7 6 5 4 3 2 1")
        #expect(try await pages(timeline) == ["3:0", "3:20", "3:10", "3:0"])
        // The next page of the gap overlaps them.
        source.prepare([17, 9, 8], next: "after 8")
        let gap = try #require(try await timeline.snapshot().segments.compactMap(\.gap).first)
        try await timeline.fill(gap)
        #expect(try await pages(timeline) == ["3:0", "3:0", "1:20", "3:10", "3:0"])
    }

    @Test func `only pages on screen that are not fresh are fetched again, by their validators`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        scene.clock.advance(by: .seconds(55))
        let count = source.requests.count
        // The third page is 55 s old.
        try await timeline.refresh(around: ["2", "77"])
        #expect(source.requests.count == count)
        source.script.prepare(.notModified())
        try await timeline.refresh(around: ["4", "3", "2"])
        let request = try #require(source.requests.last)
        #expect(source.requests.count == count + 1)
        #expect(request.cursor == "after 7" && request.validator == "v6" && request.limit == 3)
        #expect(request.mustRevalidate)
        #expect(try await pages(timeline) == ["3:75", "3:0", "3:55"])
        #expect(try await pages(try scene.cache().timeline(source.resource(), .cacheOnly)) == ["3:75", "3:0", "3:55"])
        // A person's refresh fetches fresh pages too, but no other page.
        scene.clock.advance(by: .seconds(1))
        source.prepare([6, 4], next: "after 4", validator: "v6b")
        source.script.prepare(.notModified())
        try await timeline.refresh(around: ["5", "1"], isUserInitiated: true)
        #expect(source.requests.suffix(2).map(\.cursor) == ["after 7", "after 4"])
        #expect(source.requests.suffix(2).map(\.mustRevalidate) == [true, true])
        #expect(try await cache.line(source.resource()) == "9 8 7 6 4 3 2 1")
        #expect(try await pages(timeline) == ["3:76", "2:0", "3:0"])
        // The newest page is one of them.
        source.script.prepare(.notModified())
        try await timeline.refresh(around: ["9"])
        #expect(source.requests.last?.cursor == nil && source.requests.last?.validator == "v9")
    }

    @Test func `a page whose items have changed here is fetched as a whole`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        try await cache.update { $0.remove(Note.self, "5", deletedInVersion: 2) }
        try await cache.update { $0.invalidate(Note.self, "2") }
        #expect(try await timeline.snapshot().pages.map(\.freshness) == [.fresh, .fresh, .stale(.invalidated)])
        scene.clock.advance(by: .seconds(61))
        source.prepare([6, 4, 3], next: "after 3", validator: "v6b")
        source.prepare([2, 1, 0], next: "after 0", validator: "v2")
        try await timeline.refresh(around: ["6", "1"])
        #expect(source.requests.suffix(2).map(\.validator) == [nil, nil])
        let shown = try await timeline.snapshot()
        #expect(shown.line == "9 8 7 6 4 3 2 1 0")
        #expect(shown.pages.map(\.freshness) == [.stale(.expired), .fresh, .fresh])
    }

    @Test func `pages of an invalidated list stay stale until each of them is confirmed`() async throws {
        for isModified in [true, false] {
            let cache = try scene.cache()
            let timeline = try await loaded(cache)
            scene.clock.advance(by: .seconds(1))
            try await cache.update { $0.invalidate(timeline.key) }
            #expect(try await timeline.snapshot().freshness(of: 6..<9) == .stale(.invalidated))
            if isModified {
                source.prepare([9, 8, 7], next: "after 7", validator: "v9b")
            } else {
                source.script.prepare(.notModified())
            }
            try await timeline.refresh()
            for timeline in [timeline, try scene.cache().timeline(source.resource(), .cacheOnly)] {
                let shown = try await timeline.snapshot()
                #expect(shown.pages.map(\.freshness.isFresh) == [true, false, false], "modified: \(isModified)")
            }
            source.prepare([6, 5, 4], next: "after 4")
            try await timeline.refresh(around: ["4"])
            #expect(try await timeline.snapshot().pages.map(\.freshness.isFresh) == [true, true, false])
            cache.close()
            scene.clock.advance(by: .seconds(100))
        }
    }

    @Test func `pages have no age after the clock was set back, also when the newest page is confirmed`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        scene.clock.set(wall: scene.clock.now - .seconds(3_600))
        #expect(
            try await timeline.snapshot().pages.map(\.freshness) == Array(repeating: .stale(.clockUncertain), count: 3)
        )
        source.prepare([9, 8, 7], next: "after 7")
        try await timeline.refresh()
        // By the wall clock the other pages seem to be ten seconds old.
        scene.clock.set(wall: scene.clock.now + .seconds(3_600))
        let shown = try await timeline.snapshot()
        #expect(shown.pages.dropFirst().map(\.freshness.isFresh) == [false, false])
    }

    @Test func `what a feed has left out makes all pages stale, also of a list that was stale already`() async throws {
        let cache = try scene.cache()
        let timeline = cache.timeline(source.resource(), .cacheOnly, readerIsAtTop: true)
        source.prepare([9, 8, 7], next: "after 7")
        try await timeline.refresh()
        try await cache.update { $0.invalidate(timeline.key) }
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.loadOlder()
        try await cache.update { $0.insertPage([Note(12), Note(11)], in: timeline.key, hasGap: true) }
        source.prepare([12, 11, 9], next: "after 9")
        try await timeline.refresh()
        let last = try #require(try await timeline.snapshot().pages.last)
        #expect(!last.freshness.isFresh)
    }

    @Test func `an observer learns when a page that is not the newest expires`() async throws {
        let cache = try scene.cache(inMemory: true)
        let timeline = try await loaded(cache)
        source.prepare([9, 8, 7], next: "after 7")
        try await timeline.refresh()
        let seen = SequenceRecorder(timeline.snapshots)
        await seen.wait { $0.last?.freshness == .fresh }
        try await scene.clock.waitForSleepers(1)
        scene.clock.advance(by: .seconds(50))
        let last = try #require(await seen.wait { $0.last?.freshness == .stale(.expired) }.last)
        #expect(last.pages.map(\.freshness.isFresh) == [true, false, true])
    }

    @Test func `a page whose cursor is gone is fetched with the page above it`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        scene.clock.advance(by: .seconds(61))
        source.script.prepare(.gone)
        source.prepare([9, 8, 7], next: "after 7 again")
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh(around: ["5"])
        #expect(source.cursors.suffix(3) == ["after 7", "newest", "after 7 again"])
        #expect(try await pages(timeline) == ["3:0", "3:0", "3:61"])
    }

    @Test func `a page that is being confirmed says so`() async throws {
        let cache = try scene.cache(inMemory: true)
        let timeline = try await loaded(cache)
        scene.clock.advance(by: .seconds(59))
        let seen = SequenceRecorder(timeline.snapshots)
        let refresh = Task { try await timeline.refresh(around: ["5"]) }
        await seen.wait { $0.last?.pages.map(\.isRefreshing) == [false, true, false] }
        await source.script.waitForRequests(4)
        #expect(seen.elements.last?.gapsBeingFilled == [])
        source.script.answer(3, .notModified())
        try await refresh.value
        await seen.wait { $0.last?.pages.contains { $0.isRefreshing } == false }
    }

    @Test func `a page that is confirmed without a lifetime keeps the one that its source has stated`() async throws {
        let cache = try scene.cache()
        var feed = source.resource()
        feed.freshness = .source
        let timeline = cache.timeline(feed, .cacheOnly)
        let pages = [source.page([6, 5, 4], next: "after 4"), source.page([3, 2, 1], next: nil)]
        source.script.prepare(.value(pages[0], validator: "v6", lifetime: .seconds(600)))
        source.script.prepare(.value(pages[1], validator: "v3", lifetime: .seconds(600)))
        try await timeline.refresh()
        try await timeline.loadOlder()
        scene.clock.advance(by: .seconds(10))
        source.script.prepare(.notModified())
        try await timeline.refresh(around: ["2"], isUserInitiated: true)
        #expect(source.requests.last?.validator == "v3")
        #expect(try await timeline.snapshot().pages.last?.times.expiresAt == scene.clock.now + .seconds(600))
        scene.clock.advance(by: .seconds(600))
        #expect(try await timeline.snapshot().pages.last?.freshness == .stale(.expired))
    }

    @Test func `a confirmed page counts as bytes that were not transferred`() async throws {
        let cache = try scene.cache()
        let timeline = try await loaded(cache)
        scene.events.withLock { $0 = [] }
        scene.clock.advance(by: .seconds(1))
        source.script.prepare(.notModified())
        try await timeline.refresh(around: ["2"], isUserInitiated: true)
        let spared = scene.events.withLock { events in
            events.compactMap { if case .revalidated("feed", _, let bytes) = $0 { bytes } else { nil } }
        }
        #expect(spared.count == 1 && spared.allSatisfy { $0 > 0 })
    }
}

import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Timelines: races", .oneMinute)
struct TimelineRaceTests {
    let scene = CacheScene()
    let source = PageSource()

    private func started(_ cache: LarderCache) async throws -> (Timeline<Note>, PagedResource<Note>) {
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        scene.clock.advance(by: .seconds(1))
        return (timeline, feed)
    }

    @Test(arguments: [false, true], [false, true])
    func `a refresh and a page at the end that are in flight together are both merged`(
        _ isApart: Bool,
        _ refreshFirst: Bool
    )
        async throws
    {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let older = Task { try await timeline.loadOlder() }
        await source.script.waitForRequests(2)
        let refresh = Task { try await timeline.refresh() }
        await source.script.waitForRequests(3)
        func answerRefresh() async throws {
            if isApart {
                source.answer(2, [12, 11], next: "after 11")
            } else {
                source.answer(2, [7, 6], next: "after 6")
            }
            try await refresh.value
        }
        if refreshFirst { try await answerRefresh() }
        source.answer(1, [3, 2], next: "after 2")
        #expect(try await older.value == .more)
        if !refreshFirst { try await answerRefresh() }
        #expect(try await cache.line(feed) == (isApart ? "12 11 | 6 5 4 3 2" : "7 6 5 4 3 2"))
        #expect(try await scene.cache().line(feed) == (isApart ? "12 11 | 6 5 4 3 2" : "7 6 5 4 3 2"))
    }

    @Test func `a page that was asked for before the list was invalidated is stale when it arrives`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let older = Task { try await timeline.loadOlder() }
        await source.script.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        let key = feed.key
        try await cache.update { $0.invalidate(key) }
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        source.answer(1, [3, 2], next: "after 2")
        _ = try await older.value
        let pages = try await cache.timeline(feed, .cacheOnly).snapshot().pages
        #expect(pages.map(\.freshness.isFresh) == [true, false])
    }

    @Test func `a page that was asked for before the clock was set back is stale when it arrives`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let older = Task { try await timeline.loadOlder() }
        await source.script.waitForRequests(2)
        scene.clock.set(wall: scene.clock.now - .seconds(3_600))
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        source.answer(1, [3, 2], next: "after 2")
        _ = try await older.value
        scene.clock.advance(by: .seconds(10))
        scene.clock.set(wall: scene.clock.now + .seconds(3_600))
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        let pages = try await cache.timeline(feed, .cacheOnly).snapshot().pages
        #expect(pages.map(\.freshness.isFresh) == [true, false])
    }

    @Test func `a page that arrives after a reset changes nothing`() async throws {
        let cache = try scene.cache()
        var (timeline, feed) = try await started(cache)
        let older = Task { [timeline] in try await timeline.loadOlder() }
        await source.script.waitForRequests(2)
        source.prepare([12, 11], next: "after 11")
        feed.dropsBehindGap = true
        timeline = cache.timeline(feed)
        try await timeline.refresh()
        source.answer(1, [3, 2], next: "after 2")
        #expect(try await older.value == .more)
        #expect(try await cache.line(feed) == "12 11")
        source.prepare([10])
        try await timeline.loadOlder()
        #expect(source.cursors.last == "after 11")
    }

    @Test(arguments: [false, true])
    func `of two refreshes the older answer does not replace the newer`(_ isOtherProcess: Bool) async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let later = isOtherProcess ? try scene.cache() : cache
        let first = Task { try await timeline.refresh() }
        await source.script.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        let second = Task { try await later.timeline(feed).refresh() }
        await source.script.waitForRequests(3)
        source.answer(2, [9, 7, 6], next: "after 6")
        try await second.value
        source.answer(1, [8, 7, 6], next: "after 6")
        try await first.value
        // 8 was deleted between the two.
        #expect(try await cache.line(feed) == "9 7 6 5 4")
        #expect(try await later.line(feed) == "9 7 6 5 4")
        #expect(try await cache.timeline(feed, .cacheOnly).snapshot().times?.validatedAt == scene.clock.now)
    }

    @Test func `of two refreshes without overlap the older answer is ignored`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let first = Task { try await timeline.refresh() }
        await source.script.waitForRequests(2)
        scene.clock.advance(by: .seconds(1))
        let second = Task { try await timeline.refresh() }
        await source.script.waitForRequests(3)
        source.answer(2, [30, 29], next: "after 29")
        try await second.value
        source.answer(1, [20, 19], next: "after 19")
        try await first.value
        #expect(try await cache.line(feed) == "30 29 | 6 5 4")
        // A late page that overlaps the items behind the gap leaves them too.
        let third = Task { try await timeline.refresh() }
        await source.script.waitForRequests(4)
        scene.clock.advance(by: .seconds(1))
        source.prepare([40, 39], next: "after 39")
        try await timeline.refresh()
        source.answer(3, [31, 30, 29, 28], next: "after 28")
        try await third.value
        #expect(try await cache.line(feed) == "40 39 | 30 29 | 6 5 4")
    }

    @Test(arguments: [false, true])
    func `a page without an item that memory has lost since is not fresh, and one without a removed item is`(
        _ isRemoved: Bool
    ) async throws {
        let cache = try scene.cache(inMemory: true)
        let (timeline, feed) = try await started(cache)
        let refresh = Task { try await timeline.refresh() }
        await source.script.waitForRequests(2)
        // The reply is older than this, and cannot replace it.
        try await cache.update { update in
            if isRemoved {
                update.remove(Note.self, "5")
            } else {
                update.put(Note(5, "changed", revision: 2))
            }
        }
        cache.trimMemory(toBytes: 0)
        source.answer(1, [6, 5, 4], next: "after 4")
        try await refresh.value
        #expect(try await cache.line(feed) == (isRemoved ? "6 4" : "6 | 4"))
        let freshness = try await cache.timeline(feed, .cacheOnly).snapshot().freshness
        #expect((freshness == .fresh) == isRemoved)
    }

    /// What events insert while a page is in flight, the page, and the list in the end.
    struct Meeting: Sendable {
        let events: ClosedRange<Int>
        let page: [Int]
        let next: String?
        let list: String
    }

    @Test(arguments: [
        // Behind the page: they follow its last item.
        Meeting(events: 7...12, page: [12, 11, 10], next: "after 10", list: "12 11 10 | 9 8 7 6 5 4"),
        // A replica does not have them yet.
        Meeting(events: 7...12, page: [12, 10, 7, 6], next: "after 6", list: "12 11 10 9 8 7 6 5 4"),
        Meeting(events: 7...12, page: [12, 10, 7], next: nil, list: "12 11 10 9 8 7 ."),
        // The page's last item was not announced.
        Meeting(events: 9...12, page: [12, 8], next: "after 8", list: "12 11 10 9 8 | 6 5 4"),
    ])
    func `items of events that arrive during a refresh keep their order`(_ meeting: Meeting) async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let refresh = Task { try await timeline.refresh() }
        await source.script.waitForRequests(2)
        scene.clock.advance(by: .milliseconds(1))
        for number in meeting.events {
            try await cache.update { update in
                update.insert(Note(number), in: feed.key, isNew: true) { (Int($0) ?? 0) > (Int($1) ?? 0) }
            }
        }
        source.answer(1, meeting.page, next: meeting.next)
        try await refresh.value
        #expect(try await cache.line(feed) == meeting.list)
    }

    @Test(arguments: [[1], [3, 1]])
    func `an item of an event at the end stays at the end of a page that is longer than the list`(
        _ events: [Int]
    ) async throws {
        let cache = try scene.cache()
        let feed = source.resource(pageSize: 5)
        let timeline = cache.timeline(feed)
        source.prepare([6, 5, 4])
        try await timeline.refresh()
        scene.clock.advance(by: .seconds(1))
        try await cache.update { update in
            for number in events {
                update.insert(Note(number), in: feed.key, isNew: true) { (Int($0) ?? 0) > (Int($1) ?? 0) }
            }
        }
        source.prepare([6, 5, 4, 3, 2])
        try await timeline.refresh()
        #expect(try await cache.line(feed) == "6 5 4 3 2 1 .")
    }

    @Test func `insertions and removals by events during a refresh stay`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let refresh = Task { try await timeline.refresh() }
        await source.script.waitForRequests(2)
        try await cache.update { $0.insertNewest(Note(8), in: timeline.key) }
        try await cache.update { update in
            update.remove(Note.self, "6", deletedInVersion: 2)
            update.put(Note(5, "edited", revision: 2))
        }
        source.answer(1, [7, 6, 5], next: "after 5")
        try await refresh.value
        #expect(try await cache.line(feed) == "8 7 5 4")
        #expect(try await timeline.snapshot().items.map(\.text) == ["", "", "edited", ""])
        #expect(try await scene.cache().line(feed) == "8 7 5 4")
    }

    @Test(arguments: ["refresh", "older", "older, then refresh"])
    func `an item that an edit takes out during a request does not come back with the reply`(_ requests: String)
        async throws
    {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        let isOlder = requests != "refresh"
        let request = Task<Void, any Error> {
            if isOlder { _ = try await timeline.loadOlder() } else { try await timeline.refresh() }
        }
        await source.script.waitForRequests(2)
        let key = feed.key
        try await cache.update { update in update.edit(key) { keys in keys.removeAll { $0.id == "4" } } }
        if requests == "older, then refresh" {
            source.prepare([6, 5], next: "after 4")
            try await timeline.refresh()
        }
        let page = source.page(isOlder ? [4, 3] : [6, 5, 4], next: isOlder ? "after 3" : "after 4")
        source.script.answer(1, .value(page, validator: "v"))
        try await request.value
        #expect(try await cache.line(feed) == (isOlder ? "6 5 3" : "6 5"))
        #expect(try await scene.cache().line(feed) == (isOlder ? "6 5 3" : "6 5"))
        guard !isOlder else { return }
        // The next reply contains the edit or does not. A "not modified" would keep the item away.
        source.prepare([6, 5, 4], next: "after 4")
        try await timeline.refresh()
        #expect(source.requests.last?.validator == nil)
        #expect(try await cache.line(feed) == "6 5 4")
    }

    @Test func `an event before the first page is not lost`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        let refresh = Task { try await timeline.refresh() }
        await source.script.waitForRequests(1)
        try await cache.update { $0.insertNewest(Note(4), in: timeline.key) }
        source.answer(0, [3, 2], next: "after 2")
        try await refresh.value
        #expect(try await cache.line(feed) == "4 3 2")
        source.prepare([1])
        #expect(try await timeline.loadOlder() == .finished)
    }

    @Test func `readers of one list share its requests, and the last one to leave cancels them`() async throws {
        let cache = try scene.cache()
        let (_, feed) = try await started(cache)
        let readers = (0..<20).map { _ in Task { try await cache.timeline(feed).loadOlder() } }
        await source.script.waitForRequests(2)
        await scene.joined(readers.count - 1)
        source.answer(1, [3, 2], next: "after 2")
        for reader in readers { #expect(try await reader.value == .more) }
        // A later call fetches the next page.
        let task = Task { try await cache.timeline(feed).loadOlder() }
        await source.script.waitForRequests(3)
        let cancelled = source.script.cancelled
        task.cancel()
        await #expect(throws: LarderError.self) { try await task.value }
        await source.script.waitForCancellations(cancelled + 1)
        // The cancellation is not recorded as a failure.
        #expect(try await cache.timeline(feed).snapshot().loadOlderError == nil)
        source.prepare([1])
        #expect(try await cache.timeline(feed).loadOlder() == .finished)
    }

    @Test func `activity at the front and at the end and in a gap is reported separately`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        source.prepare([12, 11], next: "after 11")
        try await timeline.refresh()
        let seen = SequenceRecorder(cache.timeline(feed).snapshots)
        let start = try #require(await seen.wait(for: 1).last)
        guard case .gap(let gap) = start.segments[1] else { return #expect(Bool(false), "There is no gap.") }
        let older = Task { try await timeline.loadOlder() }
        await seen.wait { $0.last?.isLoadingOlder ?? false }
        let fill = Task { try await timeline.fill(gap) }
        await seen.wait { $0.last?.gapsBeingFilled == [gap.id] }
        #expect(seen.elements.allSatisfy { !$0.isRefreshing })
        await source.script.waitForRequests(4)
        let tail = source.cursors.firstIndex(of: "after 4") ?? 0
        source.script.fail(tail, Broken())
        await #expect(throws: LarderError.self) { try await older.value }
        var last = try #require(await seen.wait { $0.last?.loadOlderError != nil }.last)
        #expect(last.line == "12 11 | 6 5 4" && last.refreshError == nil && last.gapErrors.isEmpty)
        #expect(last.gapsBeingFilled == [gap.id] && !last.isLoadingOlder)
        source.script.fail(5 - tail, Broken())
        await #expect(throws: LarderError.self) { try await fill.value }
        last = try #require(await seen.wait { $0.last?.gapErrors[gap.id] != nil }.last)
        #expect(last.line == "12 11 | 6 5 4" && last.freshness == .fresh)
        source.prepare([3])
        try await timeline.loadOlder(isUserInitiated: true)
        last = try #require(
            await seen.wait { $0.last?.hasReachedEnd ?? false && $0.last?.isLoadingOlder == false }.last
        )
        #expect(last.loadOlderError == nil && last.line == "12 11 | 6 5 4 3 .")
    }

    @Test func `new items are held back until they are taken except own items`() async throws {
        let cache = try scene.cache()
        let (timeline, _) = try await started(cache)
        let seen = SequenceRecorder(timeline.snapshots)
        await seen.wait { $0.last?.line == "6 5 4" }
        source.prepare([8, 7, 6], next: "after 6")
        try await timeline.refresh()
        await seen.wait { $0.last?.line == "(2) 6 5 4" }
        try await cache.update { $0.insertNewest(Note(9), in: timeline.key) }
        await seen.wait { $0.last?.line == "(3) 6 5 4" }
        try await cache.update { $0.insertNewest(Note(10), in: timeline.key, isOwn: true) }
        await seen.wait { $0.last?.line == "(3) 10 6 5 4" }
        // Shown items change at once, and a held-back item is removed by its deletion.
        try await cache.update { update in
            update.put(Note(6, "edited", revision: 2))
            update.remove(Note.self, "7", deletedInVersion: 2)
        }
        await seen.wait { $0.last?.line == "(2) 10 6 5 4" }
        // Another reader has no held-back items.
        #expect(try await cache.timeline(source.resource(), .cacheOnly).snapshot().line == "10 9 8 6 5 4")
        #expect(timeline.showHeldBack() == 2)
        let last = try #require(await seen.wait { $0.last?.line == "10 9 8 6 5 4" }.last)
        #expect(last.difference.insertions.map(\.id) == ["9", "8"] && last.difference.moves.isEmpty)
        // A gap before the shown items is held back with the new ones.
        scene.clock.advance(by: .seconds(1))
        source.prepare([22, 21], next: "after 21")
        try await timeline.refresh()
        await seen.wait { $0.last?.line == "(2) 10 9 8 6 5 4" }
        #expect(timeline.showHeldBack() == 2)
        await seen.wait { $0.last?.line == "22 21 | 10 9 8 6 5 4" }
    }

    @Test func `a cursor unknown to the server is replaced by fetching the pages above it`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        source.prepare([3, 2, 1], next: "after 1")
        try await timeline.loadOlder()
        try await cache.update { $0.remove(Note.self, "1", deletedInVersion: 2) }
        source.script.prepare(.gone)
        source.prepare([3, 2, 0], next: "after 0")
        source.prepare([-1])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(source.cursors == ["newest", "after 4", "after 1", "after 4", "after 0"])
        #expect(try await cache.line(feed) == "6 5 4 3 2 0 -1 .")
    }

    @Test func `if the server knows no cursor, paging starts again at the newest page`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        source.prepare([3, 2, 1], next: "after 1")
        try await timeline.loadOlder()
        try await cache.update { update in
            for id in ["4", "1"] { update.remove(Note.self, id, deletedInVersion: 2) }
        }
        source.script.prepare(failure: LarderError(.rejected, "no such post", status: 410))
        source.script.prepare(.gone)
        source.prepare([6, 5, 3], next: "after 3")
        source.prepare([2, 0], next: "after 0")
        source.prepare([-1])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(source.cursors.dropFirst(2) == ["after 1", "after 4", "newest", "after 3", "after 0"])
        #expect(try await cache.line(feed) == "6 5 3 2 0 -1 .")
        // If that fails too, the error names the remedy.
        let other = PagedResource<Note>("other", pageSize: 2) { try await source.fetch($0) }
        let dead = cache.timeline(other)
        source.prepare([52, 51], next: "after 51")
        try await dead.refresh()
        scene.clock.advance(by: .seconds(1))
        source.script.prepare(.gone)
        source.prepare([52, 51], next: "after 51")
        let error = await #expect(throws: LarderError.self) { try await dead.loadOlder() }
        #expect(error?.code == .gone)
        #expect(try await cache.line(other) == "52 51")
    }

    @Test func `what no cursor leads to any more is loaded again from the gap above it`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        for top in [20, 30] {
            scene.clock.advance(by: .seconds(1))
            source.prepare([top, top - 1, top - 2], next: "after \(top - 2)")
            try await timeline.refresh()
        }
        #expect(try await cache.line(feed) == "30 29 28 | 20 19 18 | 6 5 4")
        // Of a gap.
        guard case .gap(let gap) = try await timeline.snapshot().segments[3] else {
            return #expect(Bool(false), "There is no gap.")
        }
        source.script.prepare(.gone)
        source.prepare([27, 26, 25], next: "after 25")
        try await timeline.fill(gap)
        #expect(source.cursors.suffix(2) == ["after 18", "after 28"])
        #expect(try await cache.line(feed) == "30 29 28 27 26 25 | 6 5 4")
        // Of the end.
        source.script.prepare(.gone)
        source.prepare([24, 23], next: "after 23")
        #expect(try await timeline.loadOlder() == .more)
        #expect(source.cursors.suffix(2) == ["after 4", "after 25"])
        #expect(try await cache.line(feed) == "30 29 28 27 26 25 24 23")
    }

    @Test func `a closed cache ends requests in flight and a forbidden network is not used`() async throws {
        let cache = try scene.cache()
        let (timeline, feed) = try await started(cache)
        scene.isOnline.withLock { $0 = false }
        let error = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect(error?.code == .offline && source.requests.count == 1)
        scene.isOnline.withLock { $0 = true }
        let seen = SequenceRecorder(timeline.snapshots)
        await seen.wait(for: 1)
        let older = Task { try await timeline.loadOlder() }
        await source.script.waitForRequests(2)
        cache.close()
        let closed = await #expect(throws: LarderError.self) { try await older.value }
        #expect(closed?.code == .closed)
        await seen.waitForEnd()
        await source.script.waitForCancellations(1)
        await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect(try await scene.cache().line(feed) == "6 5 4")
    }
}

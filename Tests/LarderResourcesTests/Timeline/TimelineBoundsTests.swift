import Foundation
import LarderEvents
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// A note whose codec records on which threads it runs: assembling a list decodes its items.
private struct TracedNote: CacheEntity {
    static let entityType = "traced note"
    static let threads = Mutex<Set<String>>([])
    static let codec = PayloadCodec<TracedNote>(
        encode: { Array($0.id.utf8) },
        decode: { bytes in
            let name = DiskExecutor.isCurrentThread ? "disk" : Thread.isMainThread ? "main" : "other"
            threads.withLock { _ = $0.insert(name) }
            return TracedNote(id: String(decoding: bytes, as: UTF8.self))
        }
    )

    var id: String
}

@Suite("Timelines: bounds and wrong replies", .oneMinute)
struct TimelineBoundsTests {
    private let scene = CacheScene()
    private let source = PageSource()

    private func anchored(itemsMaximum: Int = 5_000) -> PagedResource<Note> {
        var resource = source.resource(pageSize: 4)
        resource.itemsMaximum = itemsMaximum
        resource.isNewer = { (Int($0) ?? 0) > (Int($1) ?? 0) }
        return resource
    }

    @Test func `a full list that is opened at overlapping pages keeps its maximum and the item`() async throws {
        let cache = try scene.cache()
        let timeline = cache.timeline(anchored(itemsMaximum: 8), .cacheOnly, readerIsAtTop: true)
        source.prepare([20, 19, 18, 17], next: "after 17")
        try await timeline.refresh()
        source.prepare([16, 15, 14, 13], next: "after 13")
        try await timeline.loadOlder()
        // It overlaps the oldest loaded item.
        source.prepare([13, 12, 11, 10], next: "after 10")
        try await timeline.open(at: "11")
        #expect(try await timeline.snapshot().line == "| 13 12 11 10")
        source.prepare([9, 8, 7, 6], next: "after 6")
        try await timeline.loadOlder()
        #expect(try await timeline.snapshot().line == "| 13 12 11 10 9 8 7 6")
        // It overlaps the newest loaded item: there is room after the oldest page is dropped.
        source.prepare([16, 15, 14, 13], next: "after 13")
        try await timeline.open(at: "15")
        #expect(try await timeline.snapshot().line == "| 16 15 14 13 12 11 10")
    }

    @Test func `a source that ignores the item of a request around it is reported, and nothing is changed`()
        async throws
    {
        let cache = try scene.cache()
        let timeline = cache.timeline(anchored(), .cacheOnly, readerIsAtTop: true)
        source.prepare([20, 19, 18, 17], next: "after 17")
        try await timeline.refresh()
        source.prepare([21, 20, 19, 18], next: "after 18")
        await #expect {
            try await timeline.open(at: "5")
        } throws: { error in
            guard let error = error as? LarderError else { return false }
            return error.code == .unexpectedReply && error.description.contains("5")
        }
        #expect(try await timeline.snapshot().line == "20 19 18 17")
    }

    @Test func `the gap at the newest end waits as the list does after a failure`() async throws {
        let cache = try scene.cache()
        let timeline = cache.timeline(anchored(), .cacheOnly, readerIsAtTop: true)
        source.prepare([13, 12, 11, 10], next: "after 10")
        try await timeline.open(at: "12")
        source.script.prepare(failure: LarderError(.rejected, "busy", status: 503, retryAfter: .seconds(30)))
        await #expect(throws: LarderError.self) { try await timeline.refresh() }
        #expect(source.requests.count == 2)
        let held = await #expect(throws: LarderError.self) { try await timeline.loadNewer() }
        #expect((held?.retryAfter ?? .zero) >= .seconds(30) && source.requests.count == 2)
        source.prepare([14, 13], next: "after 13")
        try await timeline.loadNewer(isUserInitiated: true)
        #expect(source.requests.count == 3)
        #expect(try await timeline.snapshot().line == "14 13 12 11 10")
    }

    @Test func `a late confirmation of a page does not make it older`() throws {
        func times(_ seconds: Int64) -> Freshness.Times {
            let time = WallTime(nanosecondsSinceEpoch: seconds * 1_000_000_000)
            let asked = Stamp(rawValue: seconds)
            return Freshness.Times(fetchedAt: time, validatedAt: time, expiresAt: time + .seconds(60), asked: asked)
        }
        let keys = [Note.key("2"), Note.key("1")]
        let confirmation = PageFacts.Confirmation(validator: "v", limit: 1, digest: PageFacts.digest([keys[1]]))
        var list = RunList()
        list.runs[0].items = [.init(keys[0])]
        let facts = PageFacts(times(100), confirmation: confirmation)
        list.runs.append(.init(start: .joined("after 2"), items: [.init(keys[1])], facts: facts))
        let minute = StatedFreshness(lifetime: .seconds(60))
        list.confirm("after 2", confirmation, minute, at: times(50).validatedAt, asked: times(50).asked)
        #expect(list.runs[1].facts.times == times(100))
        list.confirm("after 2", confirmation, minute, at: times(150).validatedAt, asked: times(150).asked)
        #expect(list.runs[1].facts.times.validatedAt == times(150).validatedAt)
        #expect(list.runs[1].facts.times.expiresAt == times(150).expiresAt)
    }

    @Test func `a late newest page changes nothing`() throws {
        func page(_ seconds: Int64, _ keys: [Int], _ cursor: String) -> IncomingPage {
            let time = WallTime(nanosecondsSinceEpoch: seconds * 1_000_000_000)
            return IncomingPage(
                keys: keys.map { Note.key("\($0)") },
                cursor: cursor,
                limit: 3,
                times: Freshness.Times(nil, at: time, asked: Stamp(rawValue: seconds)),
                receivedAt: time
            )
        }
        var list = RunList()
        list.takeNewest(page(30, [5, 4, 3], "after 3"))
        let before = list
        list.takeNewest(page(20, [4, 3, 2], "after 2"))
        #expect(list == before)
    }

    @MainActor
    @Test func `loading pages assembles the list on threads of the cache`() async throws {
        var resource = PagedResource<TracedNote>("traced", pageSize: 2) { request in
            let last = request.cursor.flatMap { Int($0) } ?? 100
            let items = [last - 1, last - 2].map { TracedNote(id: "\($0)") }
            return .value(EntityList(items, nextCursor: "\(last - 2)", previousCursor: "\(last)"))
        }
        resource.isNewer = { (Int($0) ?? 0) > (Int($1) ?? 0) }
        let cache = try scene.cache()
        let first = cache.timeline(resource, .cacheOnly)
        try await first.refresh()
        try await first.loadOlder()
        for step in 0..<3 {
            TracedNote.threads.withLock { $0 = [] }
            // Nothing is in memory.
            let cache = try scene.cache()
            let timeline = cache.timeline(resource, .cacheOnly)
            switch step {
            case 0: try await timeline.loadOlder()
            case 1: try await timeline.loadNewer()
            default: try await timeline.fill(Timeline<TracedNote>.Gap(.tail))
            }
            #expect(TracedNote.threads.withLock { $0 } == ["disk"], "step \(step)")
        }
    }

    @Test func `a list that was cut within its newest page is full, and its end is found again after a deletion`()
        async throws
    {
        let cache = try scene.cache()
        var feed = source.resource()
        feed.itemsMaximum = 6
        let timeline = cache.timeline(feed, .cacheOnly)
        source.prepare([3, 2, 1], next: "after 1")
        try await timeline.refresh()
        let key = feed.key
        try await cache.update { update in
            for number in 4...7 { update.insertNewest(Note(number), in: key, isOwn: true) }
        }
        scene.clock.advance(by: .seconds(1))
        source.prepare([3, 2, 1], next: "after 1")
        try await timeline.refresh()
        #expect(try await cache.line(feed) == "7 6 5 4 3 2")
        #expect(try await timeline.loadOlder() == .full)
        #expect(source.requests.count == 2)
        try await cache.update { $0.remove(Note.self, "7", deletedInVersion: 2) }
        scene.clock.advance(by: .seconds(1))
        source.prepare([6, 5, 4], next: "after 4")
        #expect(try await timeline.loadOlder() == .more)
        source.prepare([3, 2, 1])
        #expect(try await timeline.loadOlder() == .finished)
        #expect(source.cursors.suffix(2) == ["newest", "after 4"])
        #expect(try await cache.line(feed) == "6 5 4 3 2 1 .")
    }
}

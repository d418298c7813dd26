import LarderTesting
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Timelines: held-back items", .oneMinute)
struct HoldBackTests {
    let scene = CacheScene()
    let source = PageSource()

    @Test func `new items are held back until they are taken while changes and removals show at once`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        let timeline = cache.timeline(feed)
        func refresh(_ notes: [Note]) async throws -> Timeline<Note>.Snapshot {
            source.script.prepare(.value(EntityList(notes)))
            try await timeline.refresh()
            return try await timeline.snapshot()
        }
        _ = try await refresh([])
        #expect(try await refresh([Note(3), Note(2), Note(1)]).line == "3 2 1 .")
        let edited = Note(2, "edited", revision: 2)
        var shown = try await refresh([Note(5), Note(4), Note(3), edited, Note(1), Note(0)])
        #expect(shown.line == "(2) 3 2 1 0 ." && shown.items[1].text == "edited")
        shown = try await refresh([Note(5), edited, Note(1), Note(0)])
        #expect(shown.line == "(1) 2 1 0 .")
        #expect(timeline.showHeldBack() == 1)
        #expect(try await timeline.snapshot().line == "5 2 1 0 .")
        #expect(try await refresh([Note(9), Note(8)]).line == "9 8 .")
    }

    @Test func `a reader that takes new items gets the difference`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        source.prepare([3, 2, 1])
        let timeline = cache.timeline(feed)
        let views = SequenceRecorder(timeline.snapshots)
        await views.wait { $0.last?.items.count == 3 }
        source.prepare([5, 4, 3, 2, 1])
        try await timeline.refresh()
        await views.wait { $0.last?.heldBackCount == 2 }
        #expect(views.elements.last?.items.map(\.id) == ["3", "2", "1"])
        #expect(timeline.showHeldBack() == 2)
        await views.wait { $0.last?.items.count == 5 }
        #expect(views.elements.last?.difference.insertions.map(\.id) == ["5", "4"])
        try await cache.update { $0.remove(Note.self, "4", deletedInVersion: 2) }
        await views.wait { $0.last?.items.count == 4 }
        #expect(views.elements.last?.difference.removals.map(\.id) == ["4"])
    }

    @Test func `a timeline with held-back items can be iterated again after a cancellation`() async throws {
        let cache = try scene.cache(inMemory: true)
        let feed = source.resource()
        source.prepare([2, 1])
        let timeline = cache.timeline(feed)
        let first = SequenceRecorder(timeline.snapshots)
        await first.wait { $0.last?.items.count == 2 }
        first.cancel()
        await first.waitForEnd()
        try await cache.update { $0.insertNewest(Note(3), in: feed.key) }
        let second = SequenceRecorder(timeline.snapshots)
        await second.wait { $0.last?.heldBackCount == 1 }
        #expect(second.elements.last?.items.map(\.id) == ["2", "1"])
        #expect(timeline.showHeldBack() == 1)
        await second.wait { $0.last?.items.count == 3 }
        #expect(second.elements.last?.difference.insertions.map(\.id) == ["3"])
    }

    @Test func `a reader at the top gets new items at once, and held-back ones when the top is reached`() async throws {
        let cache = try scene.cache()
        let feed = source.resource()
        source.prepare([2, 1])
        let timeline = cache.timeline(feed)
        let views = SequenceRecorder(timeline.snapshots)
        await views.wait { $0.last?.items.count == 2 }
        #expect(!timeline.readerIsAtTop)
        try await cache.update { $0.insertNewest(Note(3), in: feed.key) }
        await views.wait { $0.last?.heldBackCount == 1 }
        timeline.readerIsAtTop = true
        var last = try #require(await views.wait { $0.last?.items.count == 3 }.last)
        #expect(last.difference.insertions.map(\.id) == ["3"] && last.heldBackCount == 0)
        try await cache.update { $0.insertNewest(Note(4), in: feed.key) }
        last = try #require(await views.wait { $0.last?.items.count == 4 }.last)
        #expect(last.line == "4 3 2 1 .")
        // Nothing that was shown is hidden again.
        timeline.readerIsAtTop = false
        try await cache.update { $0.insertNewest(Note(5), in: feed.key) }
        last = try #require(await views.wait { $0.last?.heldBackCount == 1 }.last)
        #expect(last.line == "(1) 4 3 2 1 .")
        // Another reader of the same list decides for itself.
        #expect(try await cache.timeline(feed, readerIsAtTop: true).snapshot().line == "5 4 3 2 1 .")
    }

    @Test func `a timeline is not observed after its loop has ended`() async throws {
        let cache = try scene.cache(inMemory: true)
        source.prepare([2, 1])
        let timeline = cache.timeline(source.resource())
        for await view in timeline.snapshots where view.items.count == 2 { break }
        #expect(timeline.node.state.withLock { $0.observers.isEmpty })
    }
}

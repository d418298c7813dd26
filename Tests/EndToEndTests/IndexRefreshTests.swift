import Foundation
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import Larder
@testable import LarderDemo

@Suite("Refreshes by index, end to end", .oneMinute)
struct IndexRefreshTests {
    private let scene: ClientScene

    init() throws { scene = try ClientScene() }

    /// The replies to requests of a device since another entry of the journal.
    private func replies(_ device: String, after number: Int) async -> [JournalRecord] {
        var match = FaultMatch("GET", "/v1/**")
        match.device = device
        var filter = JournalFilter()
        filter.match = match
        return await scene.world.journal(filter).filter { $0.number > number }
    }

    private func last() async -> Int { await scene.world.journal().last?.number ?? 0 }

    private func posts(_ client: LarderClient, byIndex: Bool) -> PagedResource<Post> {
        let source = client.source
        return PagedResource("all posts", pageSize: 100, freshness: .timeToLive(.seconds(60))) { request in
            try await source.page("/v1/feed", request, by: byIndex ? .demo(itemsAt: "/v1/posts") : .demo)
        }
    }

    private func edit(_ post: Post, _ text: String) throws {
        let author = try scene.handle(post.authorID)
        let _: Post = try scene.act("PATCH", "/v1/posts/\(post.id)", as: author, #"{"text":"\#(text)"}"#)
    }

    @Test func `500 posts of which ten have changed cost indexes and ten posts`() async throws {
        for number in 200..<500 {
            let text = "Post \(number) " + String(repeating: "with some words ", count: 6)
            let _: Post = try scene.act("POST", "/v1/posts", as: "ana", #"{"text":"\#(text)"}"#)
        }
        var bytes: [Bool: Int] = [:]
        var requests: [Bool: Int] = [:]
        for byIndex in [false, true] {
            let device = byIndex ? "tablet" : "phone"
            let client = try await scene.client(device: device)
            let timeline = client.cache.timeline(posts(client, byIndex: byIndex), .cacheOnly, readerIsAtTop: true)
            try await timeline.refresh()
            while try await timeline.loadOlder() == .more {}
            let before = try await timeline.snapshot().items
            #expect(before.count == 500)
            for number in 0..<10 { try edit(before[number * 50 + 7], "changed for \(device)") }
            scene.clock.advance(by: .seconds(7_200))
            let start = await last()
            try await timeline.refresh(around: before.map(\.id))
            let replies = await replies("ana \(device)", after: start)
            bytes[byIndex] = replies.reduce(0) { $0 + $1.bytesSent }
            requests[byIndex] = replies.count
            let shown = try await timeline.snapshot()
            #expect(try shown.items == scene.truth("/v1/feed", as: "ana", of: Post.self))
            #expect(shown.freshness == .fresh)
            // The next refresh is a 304 for each page.
            scene.clock.advance(by: .seconds(1))
            let again = await last()
            try await timeline.refresh(around: before.map(\.id), isUserInitiated: true)
            #expect(await self.replies("ana \(device)", after: again).map(\.status) == Array(repeating: 304, count: 5))
            client.close()
        }
        let (whole, index) = (bytes[false] ?? 0, bytes[true] ?? 0)
        // Five pages; five indexes and five batches of two.
        #expect(requests == [false: 5, true: 10])
        // The replies are compressed: the texts of whole pages well, the tags of an index hardly.
        #expect(index < whole, "whole pages \(whole), by index \(index)")
        print("500 posts, 10 changed: whole pages \(whole) bytes, by index \(index) bytes")
    }

    @Test func `a post that changes between index and batch is shown as it is then, and a deleted one is removed`()
        async throws
    {
        let client = try await scene.client()
        let timeline = client.cache.timeline(posts(client, byIndex: true), .cacheOnly, readerIsAtTop: true)
        try await timeline.refresh()
        let before = try await timeline.snapshot().items
        let (edited, deleted) = (before[3], before[5])
        try edit(edited, "first")
        try edit(deleted, "to be deleted")
        scene.clock.advance(by: .seconds(7_200))
        try scene.world.set(Gate(id: "batch", when: FaultMatch("GET", "/v1/posts"), stage: .request, count: 1))
        let start = await last()
        let refreshing = Task { try await timeline.refresh() }
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        try edit(edited, "second")
        scene.delete("/v1/posts/\(deleted.id)", as: try scene.handle(deleted.authorID))
        for held in scene.world.held { scene.world.release(held) }
        try await refreshing.value
        let targets = await replies("ana phone", after: start).map(\.target)
        #expect(targets.contains("/v1/posts?ids=\(edited.id)%2C\(deleted.id)"), "\(targets)")
        let shown = try await timeline.snapshot()
        #expect(shown.items.first { $0.id == edited.id }?.text == "second")
        #expect(!shown.items.contains { $0.id == deleted.id })
        let truth: [Post] = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        #expect(shown.items.count == 99 && shown.items == Array(truth.prefix(99)))
        // The page lacks an item of its index: it is not confirmed by the validator of the index.
        let next = await last()
        scene.clock.advance(by: .seconds(1))
        try await timeline.refresh()
        #expect(await replies("ana phone", after: next).map(\.target) == ["/v1/feed?limit=100"])
        #expect(try await timeline.snapshot().items == Array(truth.prefix(100)))
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `a batch that fails changes nothing, and the next refresh repairs the list`() async throws {
        let client = try await scene.client()
        let timeline = client.cache.timeline(posts(client, byIndex: true), .cacheOnly, readerIsAtTop: true)
        try await timeline.refresh()
        let before = try await timeline.snapshot().items
        try edit(before[0], "new text")
        scene.clock.advance(by: .seconds(7_200))
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(
            Fault(.respond(CannedReply(status: 503)), when: FaultMatch("GET", "/v1/posts"), occurrence: once)
        )
        await #expect(throws: LarderError.self) { try await timeline.refresh() }
        let shown = try await timeline.snapshot()
        #expect(shown.items == before && shown.freshness != .fresh)
        try await timeline.refresh()
        let truth: [Post] = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        #expect(try await timeline.snapshot().items == Array(truth.prefix(100)))
        client.close()
    }

    @Test func `a list of tasks that was not confirmed for long is refreshed by its index`() async throws {
        let client = try await scene.client()
        let list = client.tasks.list()
        let before = try await client.cache.value(list).items
        #expect(before.count > 20)
        func rename(_ title: String) throws {
            let _: WorkItem = try scene.act(
                "PATCH",
                "/v1/tasks/\(before[4].id)",
                as: "person2",
                #"{"title":"\#(title)"}"#
            )
        }
        try rename("another title")
        scene.clock.advance(by: .seconds(60))
        // Confirmed a minute ago: the page is requested with its validator.
        _ = try await client.cache.refresh(list)
        scene.clock.advance(by: .seconds(7_200))
        try rename("a third title")
        let start = await last()
        let after = try await client.cache.refresh(list).value?.items
        #expect(after?[4].title == "a third title")
        let targets = await replies("ana phone", after: start).map(\.target)
        #expect(targets.count == 2 && targets.first?.contains("fields=id%2Cversion") == true, "\(targets)")
        #expect(targets.last == "/v1/tasks?ids=\(before[4].id)")
        let again = await last()
        _ = try await client.cache.refresh(list)
        #expect(await replies("ana phone", after: again).map(\.status) == [304])
        await scene.expectGoodConduct()
        client.close()
    }
}

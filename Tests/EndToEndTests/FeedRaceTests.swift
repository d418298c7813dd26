import Foundation
import Larder
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import TestSupport
import Testing

@Suite("A feed that changes while it is read, end to end", .oneMinute)
struct FeedRaceTests {
    /// A request that the server has answered, and whose answer is still on its way.
    private struct Outstanding {
        enum Kind: Hashable { case refresh, newest, older, changes }
        let kind: Kind
        let held: HeldExchange
        let task: Task<Void, any Error>
    }

    private static let feed = FaultMatch("GET", "/v1/feed")
    private static let changes = FaultMatch("GET", "/v1/changes")

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `refreshes that race with what three other devices write, edit, like and delete end as the server has it`(
        _ seed: UInt64
    ) async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        var random = SeededGenerator(seed: seed)
        var script: [String] = []
        try await client.sync.catchUp()
        let timeline = client.feed.timeline
        let pages = SequenceRecorder(timeline.snapshots)
        let list = SequenceRecorder(client.feed.snapshots())
        await pages.wait { $0.last?.freshness == .fresh }
        await list.wait { $0.last?.freshness == .fresh }
        try await timeline.loadOlder()
        let watched = try scene.truth("/v1/feed", as: "ana", of: Post.self).prefix(3).map(\.id)
        let single = watched.map { SequenceRecorder(client.cache.snapshots(client.feed.post($0), .cacheOnly)) }
        var outstanding: [Outstanding] = []
        var deleted: Set<String> = []
        let others = [try scene.handle("user_2"), try scene.handle("user_3"), "ana"]

        func land(_ index: Int) async throws {
            let landing = outstanding.remove(at: index)
            script.append("land \(landing.kind)")
            scene.world.release(landing.held)
            try await landing.task.value
        }

        func begin(_ kind: Outstanding.Kind) async throws {
            // More than five at once would wait for a connection.
            if outstanding.count > 4 { try await land(random.uniform(in: 0..<outstanding.count)) }
            // Only one of these is sent at a time: a second would wait for the first.
            if kind == .older || kind == .changes, outstanding.contains(where: { $0.kind == kind }) { return }
            // A request of an earlier moment is no answer to a refresh.
            scene.clock.advance(by: .milliseconds(1))
            let known = Set(scene.world.held.map(\.number))
            // Held once: what it asks for again when it has landed passes.
            script.append("begin \(kind)")
            let match = kind == .changes ? Self.changes : Self.feed
            try scene.world.set(Gate(id: "\(script.count)", when: match, count: 1))
            let task = Task {
                switch kind {
                case .refresh: try await timeline.refresh()
                case .newest: _ = try await client.cache.refresh(client.feed.newest)
                case .older: try await timeline.loadOlder()
                case .changes: try await client.sync.catchUp()
                }
            }
            let isHeld = await scene.world.wait(for: .held(outstanding.count + 1), limit: .seconds(3_600))
            try #require(isHeld, "seed \(seed): \(script)")
            let held = try #require(scene.world.held.first { !known.contains($0.number) })
            outstanding.append(Outstanding(kind: kind, held: held, task: task))
        }

        for _ in 0..<40 {
            let posts = try scene.truth("/v1/feed", as: "ana", of: Post.self)
            let post = posts[random.uniform(in: 0..<45)]
            let other = others[random.uniform(in: 0..<3)]
            switch random.uniform(in: 0..<12) {
            case 0: try await begin(.refresh)
            case 1: try await begin(.newest)
            case 2: try await begin(.older)
            case 3, 4: try await begin(.changes)
            case 5:
                script.append("\(other) writes")
                let _: Post = try scene.act("POST", "/v1/posts", as: other, #"{"text":"new \#(script.count)"}"#)
            case 6:
                script.append("edit \(post.id)")
                let author = try scene.handle(post.authorId)
                let _: Post = try scene.act(
                    "PATCH",
                    "/v1/posts/\(post.id)",
                    as: author,
                    #"{"text":"\#(script.count)"}"#
                )
            case 7:
                script.append("delete \(post.id)")
                deleted.insert(post.id)
                scene.delete("/v1/posts/\(post.id)", as: try scene.handle(post.authorId))
            case 8, 9:
                script.append("\(other) likes \(post.id)")
                let method = random.uniform(in: 0..<3) == 0 ? "DELETE" : "PUT"
                let status = scene.world.perform(PhantomAct(method, "/v1/posts/\(post.id)/like", as: other)).status
                #expect((200..<300).contains(status), "\(method) like: \(status)")
            default: if !outstanding.isEmpty { try await land(random.uniform(in: 0..<outstanding.count)) }
            }
        }
        while !outstanding.isEmpty { try await land(random.uniform(in: 0..<outstanding.count)) }
        try await client.sync.catchUp()

        let truth = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        _ = try await timeline.snapshot()
        timeline.takeNew()
        let items = try await timeline.snapshot().items
        #expect(items == Array(truth.prefix(items.count)) && items.count >= 30, "seed \(seed): \(script)")
        let newest = try await client.cache.value(client.feed.newest, .cacheOnly).items
        #expect(newest == Array(truth.prefix(newest.count)) && newest.count >= 30, "seed \(seed): \(script)")
        await pages.wait { $0.last?.heldBackCount == 0 && $0.last?.items == items }
        await list.wait { $0.last?.value?.items == newest }
        expectMonotonic(pages.elements.map(\.items), deleted: deleted)
        expectMonotonic(list.elements.compactMap { $0.value?.items }, deleted: deleted)
        for (id, post) in zip(watched, single) {
            if let last = truth.first(where: { $0.id == id }) { await post.wait { $0.last?.value == last } }
            expectMonotonic(post.elements.map { $0.value.map { [$0] } ?? [] }, deleted: deleted)
        }
    }

    private struct OffsetPage: Decodable {
        var items: [Post]
        var nextPage: Int?
    }

    @Test func `by offset a post is shown twice and others never while somebody writes and deletes; by cursor neither`()
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        let timeline = client.feed.timeline
        let start = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        let friend = try scene.handle("user_2")
        var byOffset: [String] = []
        var next: Int? = 1
        var hasMore = true
        var round = 0
        while next != nil || hasMore {
            if let page = next {
                let path = "/v1/feed/pages?page=\(page)&limit=20"
                let reply: OffsetPage = try scene.act("GET", path, as: "ana")
                byOffset += reply.items.map(\.id)
                next = reply.nextPage
            }
            if hasMore { hasMore = try await timeline.loadOlder() == .more }
            round += 1
            if round == 1 {
                for index in 0..<3 {
                    let _: Post = try scene.act("POST", "/v1/posts", as: friend, #"{"text":"between pages \#(index)"}"#)
                }
            }
            if round == 4 {
                for post in start[5..<10] { scene.delete("/v1/posts/\(post.id)", as: try scene.handle(post.authorId)) }
            }
        }
        let end = Set(try scene.truth("/v1/feed", as: "ana", of: Post.self).map(\.id))
        let staying = start.map(\.id).filter { end.contains($0) }
        // Three posts were written behind page one: page two begins with the last three of page one. Five were deleted behind page
        // four: the five that moved up onto it are on no page.
        let repeated = Dictionary(grouping: byOffset, by: { $0 }).filter { $0.value.count > 1 }
        #expect(Set(repeated.keys) == Set(start[17..<20].map(\.id)))
        let missed = staying.filter { !byOffset.contains($0) }
        #expect(missed.count == 5)

        let byCursor = try await timeline.snapshot().items.map(\.id)
        #expect(Set(byCursor).count == byCursor.count)
        #expect(byCursor.filter { end.contains($0) } == staying)
        // And what came and went is right as soon as somebody asks.
        try await timeline.refresh()
        #expect(try await timeline.snapshot().heldBackCount == 3)
        timeline.takeNew()
        #expect(
            try await timeline.snapshot().items.prefix(3).map(\.text).sorted() == (0..<3).map { "between pages \($0)" }
        )
        await scene.expectGoodConduct()
    }
}

import Foundation
import Larder
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo

/// A client whose requests for the feed are answered in random order while three other devices change the feed.
private final class FeedRace {
    /// A request whose reply the server holds back.
    private struct Outstanding {
        enum Kind: Hashable { case refresh, newest, older, changes }
        let kind: Kind
        let held: HeldExchange
        let task: Task<Void, any Error>
    }

    let scene: ClientScene
    let client: LarderClient
    let timeline: Timeline<Post>
    /// The posts that were deleted so far.
    private(set) var deleted: Set<String> = []
    private let others: [String]
    private let seed: UInt64
    private var random: SeededGenerator
    private var script: [String] = []
    private var outstanding: [Outstanding] = []

    /// The seed and all steps so far, for messages.
    var history: Comment { "seed \(seed): \(script)" }

    init(seed: UInt64) async throws {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        scene = try ClientScene()
        client = try await scene.client()
        timeline = client.feed.timeline
        others = [try scene.handle("user_2"), try scene.handle("user_3"), "ana"]
    }

    /// One random step: a request, a reply, or a change by another device.
    func step() async throws {
        let posts = try truth()
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
            let author = try scene.handle(post.authorID)
            let _: Post = try scene.act("PATCH", "/v1/posts/\(post.id)", as: author, #"{"text":"\#(script.count)"}"#)
        case 7:
            script.append("delete \(post.id)")
            deleted.insert(post.id)
            scene.delete("/v1/posts/\(post.id)", as: try scene.handle(post.authorID))
        case 8, 9:
            script.append("\(other) likes \(post.id)")
            let method = random.uniform(in: 0..<3) == 0 ? "DELETE" : "PUT"
            let status = scene.world.perform(ScriptedAction(method, "/v1/posts/\(post.id)/like", as: other)).status
            #expect((200..<300).contains(status), "\(method) like: \(status)")
        default: if !outstanding.isEmpty { try await land() }
        }
    }

    /// Lets all replies arrive, and applies the change feed.
    func finish() async throws {
        while !outstanding.isEmpty { try await land() }
        try await client.sync.catchUp()
    }

    /// The server's feed.
    func truth() throws -> [Post] { try scene.truth("/v1/feed", as: "ana", of: Post.self) }

    private func land() async throws {
        let landing = outstanding.remove(at: random.uniform(in: 0..<outstanding.count))
        script.append("land \(landing.kind)")
        scene.world.release(landing.held)
        try await landing.task.value
    }

    private func begin(_ kind: Outstanding.Kind) async throws {
        // A sixth request would wait for a connection.
        if outstanding.count > 4 { try await land() }
        // A second request of these kinds would wait for the first.
        if kind == .older || kind == .changes, outstanding.contains(where: { $0.kind == kind }) { return }
        // A refresh does not join a request of an earlier moment.
        scene.clock.advance(by: .milliseconds(1))
        let known = Set(scene.world.held.map(\.number))
        script.append("begin \(kind)")
        // Only the first request is held; requests that follow from its reply pass.
        let path = kind == .changes ? "/v1/changes" : "/v1/feed"
        try scene.world.set(Gate(id: "\(script.count)", when: FaultMatch("GET", path), count: 1))
        let (client, timeline) = (client, timeline)
        let task = Task {
            switch kind {
            case .refresh: try await timeline.refresh()
            case .newest: _ = try await client.cache.refresh(client.feed.newest)
            case .older: try await timeline.loadOlder()
            case .changes: try await client.sync.catchUp()
            }
        }
        let isHeld = await scene.world.wait(for: .held(outstanding.count + 1), limit: .seconds(3_600))
        try #require(isHeld, history)
        let held = try #require(scene.world.held.first { !known.contains($0.number) })
        outstanding.append(Outstanding(kind: kind, held: held, task: task))
    }
}

@Suite("A feed that changes while it is read, end to end", .oneMinute)
struct FeedRaceTests {
    // 608: a change feed brings an edit of a post that a later refresh no longer contains.
    @Test(arguments: seeds(3) + [608])
    func `refreshes that race with changes by three devices end with the server's feed`(_ seed: UInt64) async throws {
        let race = try await FeedRace(seed: seed)
        let (client, timeline) = (race.client, race.timeline)
        try await client.sync.catchUp()
        let pages = SequenceRecorder(timeline.snapshots)
        let list = SequenceRecorder(client.feed.snapshots())
        await pages.wait { $0.last?.freshness == .fresh }
        await list.wait { $0.last?.freshness == .fresh }
        try await timeline.loadOlder()
        let watched = try race.truth().prefix(3).map(\.id)
        let single = watched.map { SequenceRecorder(client.cache.snapshots(client.feed.post($0), .cacheOnly)) }
        for _ in 0..<40 { try await race.step() }
        try await race.finish()

        let truth = try race.truth()
        _ = try await timeline.snapshot()
        timeline.showHeldBack()
        let items = try await timeline.snapshot().items
        #expect(items.count >= 30, race.history)
        #expect(items == Array(truth.prefix(items.count)), race.history)
        let newest = try await client.cache.value(client.feed.newest, .cacheOnly).items
        #expect(newest.count >= 30, race.history)
        #expect(newest == Array(truth.prefix(newest.count)), race.history)
        // No observer has seen an older version after a newer one.
        await pages.wait { $0.last?.heldBackCount == 0 && $0.last?.items == items }
        await list.wait { $0.last?.value?.items == newest }
        expectMonotonic(pages.elements.map(\.items), deleted: race.deleted)
        expectMonotonic(list.elements.compactMap { $0.value?.items }, deleted: race.deleted)
        for (id, post) in zip(watched, single) {
            if let last = truth.first(where: { $0.id == id }) { await post.wait { $0.last?.value == last } }
            expectMonotonic(post.elements.map { $0.value.map { [$0] } ?? [] }, deleted: race.deleted)
        }
    }

    private struct OffsetPage: Decodable {
        var items: [Post]
        var nextPage: Int?
    }

    @Test func `paging by offset repeats and misses posts while the feed changes; paging by cursor does not`()
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
                for post in start[5..<10] { scene.delete("/v1/posts/\(post.id)", as: try scene.handle(post.authorID)) }
            }
        }
        let end = Set(try scene.truth("/v1/feed", as: "ana", of: Post.self).map(\.id))
        let staying = start.map(\.id).filter { end.contains($0) }
        // Three posts were written after page 1 was read: page 2 repeats the last three of page 1. Five posts were deleted after
        // page 4 was read: the five posts that moved up to it are on no later page.
        let repeated = Dictionary(grouping: byOffset, by: { $0 }).filter { $0.value.count > 1 }
        #expect(Set(repeated.keys) == Set(start[17..<20].map(\.id)))
        let missed = staying.filter { !byOffset.contains($0) }
        #expect(missed.count == 5)

        let byCursor = try await timeline.snapshot().items.map(\.id)
        #expect(Set(byCursor).count == byCursor.count)
        #expect(byCursor.filter { end.contains($0) } == staying)
        // A refresh shows the new posts.
        try await timeline.refresh()
        #expect(try await timeline.snapshot().heldBackCount == 3)
        timeline.showHeldBack()
        #expect(
            try await timeline.snapshot().items.prefix(3).map(\.text).sorted() == (0..<3).map { "between pages \($0)" }
        )
        await scene.expectGoodConduct()
    }
    @Test func `a search is read to its end in pages while posts arrive, and shown again offline`() async throws {
        let scene = try ClientScene()
        let friend = try scene.handle("user_2")
        var written: [String] = []
        for number in 0..<45 {
            let post: Post = try scene.act("POST", "/v1/posts", as: friend, #"{"text":"walrus \#(number)"}"#)
            written.insert(post.id, at: 0)
        }
        let isOnline = Mutex(true)
        let client = try await scene.client(isOnline: { isOnline.withLock { $0 } })
        let found = client.search.posts(" Walrus ")
        #expect(try await found.snapshot().items.map(\.id) == Array(written.prefix(20)))
        #expect(try await found.loadOlder() == .more)
        let _: Post = try scene.act("POST", "/v1/posts", as: friend, #"{"text":"a late walrus"}"#)
        #expect(try await found.loadOlder() == .finished)
        let all = try await found.snapshot()
        #expect(all.items.map(\.id) == written && all.hasReachedEnd)
        isOnline.withLock { $0 = false }
        client.cache.trimMemory(toBytes: 0)
        #expect(try await client.search.posts("walrus").snapshot().items == all.items)
        await scene.expectGoodConduct()
    }
}

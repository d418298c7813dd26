import Foundation
import Larder
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo

/// The invariants of the SDK, each against the real server. ARCHITECTURE.md lists the mechanism that enforces each.
@Suite("Invariants, end to end", .oneMinute)
struct InvariantTests {
    private func withDirectory(_ body: (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(path)
    }

    @Test func `monotonic reads: an overtaken reply is never shown, in memory and after a restart`()
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        let handle = try scene.handle("user_2")
        _ = try await client.profiles.profile("user_2")
        let seen = SequenceRecorder(client.profiles.snapshots("user_2", .cacheOnly))
        await seen.wait(for: 1)
        try scene.world.set(Gate(id: "slow", when: FaultMatch("GET", "/v1/profiles/user_2"), count: 1))
        scene.clock.advance(by: .seconds(1))
        scene.edit(as: handle, #"{"bio":"second"}"#)
        let slow = Task { try await client.cache.refresh(client.profiles.resource("user_2")).value?.bio }
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        scene.edit(as: handle, #"{"bio":"third"}"#)
        scene.clock.advance(by: .seconds(1))
        #expect(try await client.cache.refresh(client.profiles.resource("user_2")).value?.bio == "third")
        scene.world.releaseAll()
        #expect(try await slow.value == "third")
        await seen.wait { $0.last?.value?.bio == "third" }
        expectMonotonic(seen.elements.map { $0.value.map { [$0] } ?? [] })
        client.close()
        let again = try await scene.client(isOnline: { false })
        #expect(try await again.profiles.profile("user_2", .cacheOnly).value?.bio == "third")
    }

    @Test func `read your writes: an unsent like stays visible over a page without it and with a lagging replica`()
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe })
        func isShown(_ posts: [Post]?) -> Bool { posts?.first { $0.id == post.id }?.likedByMe ?? false }
        let seen = SequenceRecorder(client.feed.snapshots(.cacheOnly))
        await seen.wait(for: 1)
        // The server has not received the like, and another client edits the post.
        try scene.world.set(Gate(id: "unheard", when: FaultMatch("POST", "/v1/likes"), stage: .request, count: 1))
        try client.likes.set(true, post.id)
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        let author = try scene.handle(post.authorID)
        let _: Post = try scene.act("PATCH", "/v1/posts/\(post.id)", as: author, #"{"text":"edited"}"#)
        scene.clock.advance(by: .seconds(1))
        let page = try await client.cache.refresh(client.feed.newest)
        #expect(isShown(page.value?.items) && page.pendingChanges == 1)
        #expect(page.value?.items.first { $0.id == post.id }?.text == "edited")
        scene.world.releaseAll()
        try await client.cache.outbox.drained()
        // The server has the like, and the next read is answered by a lagging replica.
        try scene.world.set(Fault(.lag(.init(commits: 2)), when: FaultMatch("GET", "/v1/feed")))
        scene.clock.advance(by: .seconds(1))
        #expect(isShown(try await client.cache.refresh(client.feed.newest).value?.items))
        await seen.wait { $0.last?.pendingChanges == 0 }
        let likes = seen.elements.map { isShown($0.value?.items) }
        #expect(likes.drop { !$0 }.allSatisfy { $0 }, "The like disappeared in between.")
    }

    @Test func `no lost write: a queued message survives a crash at any statement and is sent once`() async throws {
        let scene = try ClientScene()
        try await withDirectory { directory in
            let killable = KillableStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
            var client = try await scene.client(store: try killable.store())
            let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first).id
            let post = JournalFilter("POST", "/v1/conversations/*/messages")
            var promised: [String] = []
            var doubtful: Set<String> = []
            for step in 1...24 {
                killable.kill(atStep: step, halfWay: step.isMultiple(of: 2))
                do {
                    for part in ["a", "b"] {
                        doubtful.insert("\(step)\(part)")
                        try client.chat.send("\(step)\(part)", to: conversation)
                        doubtful.remove("\(step)\(part)")
                        promised.append("\(step)\(part)")
                    }
                    // The later steps kill the process while it sends: wait for both requests, the death, or an empty outbox.
                    let sent = await scene.world.journal(post).count
                    while step > 6, !killable.isDead, !client.cache.outbox.entries.isEmpty, !Task.isCancelled {
                        if await scene.world.journal(post).count >= sent + 2 { break }
                        await Task.yield()
                    }
                } catch {
                    #expect(killable.isDead)
                }
                client.close()
                client = try await scene.client(store: try killable.reopen())
            }
            try await client.cache.outbox.drained()
            let path = "/v1/conversations/\(conversation)/messages"
            let texts = try scene.truth(path, as: "ana", of: Message.self).map(\.text)
            let arrived = texts.reversed().filter { promised.contains($0) }
            #expect(arrived == promised)
            #expect(texts.allSatisfy { text in !doubtful.contains(text) || texts.count { $0 == text } == 1 })
            client.close()
        }
    }

    @Test func `no lost write: an operation in doubt after a crash is not cancelled by its opposite`()
        async throws
    {
        let scene = try ClientScene()
        let online = Mutex(true)
        try await withDirectory { directory in
            let killable = KillableStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
            var client = try await scene.client(store: try killable.store())
            let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe })
            try scene.world.set(Gate(when: FaultMatch("POST", "/v1/likes"), count: 1))
            try client.likes.set(true, post.id)
            // The server has applied the like, but the reply is held.
            #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
            killable.kill()
            client.close()
            online.withLock { $0 = false }
            client = try await scene.client(isOnline: { online.withLock { $0 } }, store: try killable.reopen())
            #expect(client.cache.outbox.status.inDoubt == 1)
            try client.likes.set(false, post.id)
            scene.world.releaseAll()
            online.withLock { $0 = true }
            client.cache.networkReturned()
            try await client.cache.outbox.drained()
            let truth = try scene.truth("/v1/feed", as: "ana", of: Post.self).first { $0.id == post.id }
            #expect(truth?.likedByMe == false && truth?.likeCount == post.likeCount)
            client.close()
        }
    }

    @Test func `token truth: a crash at any statement of a sync skips no change`() async throws {
        let scene = try ClientScene()
        let handle = try scene.handle("user_2")
        try await withDirectory { directory in
            let killable = KillableStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
            var client = try await scene.client(store: try killable.store())
            _ = try await client.profiles.profile("user_2")
            try await client.sync.catchUp()
            var deaths = 0
            for step in 1...24 {
                let post: Post = try scene.act("POST", "/v1/posts", as: handle, #"{"text":"\#(step)"}"#)
                scene.edit(as: handle, #"{"bio":"\#(step)"}"#)
                killable.kill(atStep: step, halfWay: step.isMultiple(of: 2))
                do { try await client.sync.catchUp() } catch { #expect(killable.isDead) }
                deaths += killable.isDead ? 1 : 0
                client.close()
                client = try await scene.client(store: try killable.reopen())
                try await client.sync.catchUp()
                #expect(try await client.profiles.profile("user_2", .cacheOnly).value?.bio == "\(step)", "step \(step)")
                #expect(try await client.cache.value(client.feed.post(post.id), .cacheOnly) == post, "step \(step)")
            }
            #expect(deaths > 4)
            client.close()
        }
    }

    @Test func `bounded: connections and disk keep their limits under load`()
        async throws
    {
        let scene = try ClientScene()
        var settings = SocketTransport.Configuration()
        settings.connectionsPerHost = 3
        let reader = try await scene.client(transport: SocketTransport(settings, clock: ManualClock()))
        let posts = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        try #require(posts.count >= 200)
        await withTaskGroup(of: Void.self) { group in
            for post in posts {
                group.addTask {
                    let read = try? await reader.cache.value(reader.feed.post(post.id))
                    #expect(read?.id == post.id)
                }
            }
        }
        let records = await scene.world.journal(JournalFilter("GET", "/v1/posts/*"))
        #expect(records.count == posts.count)
        #expect(Set(records.map(\.connection)).count <= 3)

        try await withDirectory { directory in
            var disk = DiskStore.Configuration(directory: directory, clock: scene.clock)
            disk.bytesMaximum = 64 << 10
            let store = try DiskStore(disk)
            let small = try await scene.client(device: "watch", store: store)
            let timeline = small.feed.timeline
            for page in 0..<200 where try await timeline.loadOlder() == .more {
                scene.clock.advance(by: .seconds(1))
                if page.isMultiple(of: 5) { _ = try await small.cache.maintain() }
            }
            // Unsent operations are not evicted.
            small.cache.outbox.pause()
            try small.likes.set(!posts[0].likedByMe, posts[0].id)
            _ = try await small.cache.maintain()
            #expect(try store.statistics().bytes <= 64 << 10)
            #expect(small.cache.outbox.entries.count == 1)
            small.close()
        }
    }

    @Test func `private: signing out removes all files`()
        async throws
    {
        let scene = try ClientScene()
        try await withDirectory { parent in
            let directory = parent + "/ana"
            let store = try DiskStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
            let client = try await scene.client(store: store)
            let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first)
            try await client.sync.catchUp()

            func files() -> [Data] {
                let names = FileManager.default.enumerator(atPath: directory)?.allObjects as? [String] ?? []
                return names.compactMap { FileManager.default.contents(atPath: directory + "/" + $0) }
            }
            func isAnywhere(_ text: String) -> Bool {
                files().contains { $0.range(of: Data(text.utf8)) != nil }
            }
            #expect(isAnywhere(conversation.id))
            try await client.signOut()
            #expect(files().isEmpty)
            let error = await #expect(throws: LarderError.self) { try await client.profiles.profile("user_1") }
            #expect(error?.code == .closed || error?.status == 401)
        }
    }

    @Test
    func
        `honest freshness: after a clock jump of a day back or a year ahead no value is fresh until it is revalidated`()
        async throws
    {
        let scene = try ClientScene()
        var client = try await scene.client()
        let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first).id
        func isFresh() async throws -> [Bool] {
            [
                try await client.profiles.profile("user_3", .cacheOnly).freshness.isFresh,
                try await client.cache.snapshot(client.feed.newest, .cacheOnly).freshness.isFresh,
                try await client.cache.snapshot(client.chat.messages(conversation), .cacheOnly).freshness.isFresh,
                try await client.cache.snapshot(client.bank.accounts, .cacheOnly).freshness.isFresh,
            ]
        }
        func refresh() async throws {
            _ = try await client.cache.refresh(client.profiles.resource("user_3"))
            _ = try await client.cache.refresh(client.feed.newest)
            _ = try await client.cache.refresh(client.chat.messages(conversation))
            _ = try await client.cache.refresh(client.bank.accounts)
        }
        try await refresh()
        #expect(try await isFresh() == [true, true, true, true])
        let posts = try await client.cache.value(client.feed.newest, .cacheOnly)
        for jump in [-86_400, 366 * 86_400] {
            scene.clock.set(wall: scene.clock.now + .seconds(jump))
            #expect(try await isFresh() == [false, false, false, false], "\(jump) s")
            // It is still shown, but the gate of a transfer rejects it.
            #expect(try await client.cache.value(client.feed.newest, .cacheOnly) == posts)
            try scene.world.set(Fault(.reset, when: FaultMatch("GET", "/v1/accounts"), stage: .beforeRead))
            await #expect(throws: LarderError.self) {
                try await client.cache.requireValidated(client.bank.accounts, within: .seconds(30))
            }
            scene.world.removeFaults()
            scene.clock.advance(by: .seconds(1))
            try await refresh()
            #expect(try await isFresh() == [true, true, true, true], "\(jump) s, revalidated")
        }
        // A small jump back makes expired values look fresh: first while the process runs, then while it is not running.
        scene.clock.advance(by: .seconds(400))
        #expect(try await isFresh() == [false, false, false, false])
        scene.clock.set(wall: scene.clock.now - .seconds(380))
        #expect(try await isFresh() == [false, false, false, false])
        try await refresh()
        scene.clock.advance(by: .seconds(400))
        // A write stores the current time.
        _ = try await client.profiles.profile("user_4")
        client.close()
        scene.clock.set(wall: scene.clock.now - .seconds(380))
        client = try await scene.client()
        #expect(try await client.profiles.profile("user_3", .cacheOnly).freshness.isFresh == false)
        #expect(try await client.cache.snapshot(client.feed.newest, .cacheOnly).freshness.isFresh == false)
        await scene.expectGoodConduct(saves: true)
    }
}

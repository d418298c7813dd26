import Foundation
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Posts and messages written offline", .oneMinute)
final class OfflineWritingTests: Sendable {
    private let isOnline = Mutex(true)

    private func client(_ scene: ClientScene, store: DiskStore? = nil) async throws -> LarderClient {
        try await scene.client(isOnline: { self.isOnline.withLock { $0 } }, store: store)
    }

    private func goOnline(_ client: LarderClient, _ scene: ClientScene) async throws {
        isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        let outbox = client.cache.outbox
        while !outbox.status.isDrained, !Task.isCancelled {
            // A request that is still in progress at the server is repeated after a second.
            if outbox.status.inFlight == 0 { scene.clock.advance(by: .seconds(1)) }
            await Task.yield()
        }
        try await outbox.drained()
    }

    private func goOffline() { isOnline.withLock { $0 = false } }

    private func mine(_ scene: ClientScene, _ client: LarderClient) throws -> [Post] {
        let user = client.session.userID
        return try scene.truth("/v1/feed", as: "ana", of: Post.self).filter { $0.authorID == user }
    }

    private func shown(_ client: LarderClient) async throws -> [Post] {
        try await client.cache.snapshot(client.feed.newest, .cacheOnly).value?.items ?? []
    }

    private func withKillable(
        _ scene: ClientScene,
        _ body: (KillableStore) async throws -> Void
    ) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(KillableStore(DiskStore.Configuration(directory: path, clock: scene.clock)))
    }

    // MARK: Writes as data

    @Test func `a like that is written as data offline is shown after a kill, and is sent once`() async throws {
        let scene = try ClientScene()
        try await withKillable(scene) { killable in
            var client = try await client(scene, store: try killable.store())
            let posts = try await client.cache.value(client.feed.newest).items
            let id = try #require(posts.first { !$0.likedByMe }?.id)
            func isLiked() async throws -> Bool? { try await shown(client).first { $0.id == id }?.likedByMe }
            goOffline()
            try client.base.write(.put, "/v1/posts/\(id)/like", changing: Post.self, id) { $0.likedByMe = true }
            #expect(try await isLiked() == true)
            killable.kill()
            client.close()
            client = try await self.client(scene, store: try killable.reopen())
            #expect(try await isLiked() == true)
            #expect(await scene.count("PUT", "/v1/posts/*/like") == 0)
            try await goOnline(client, scene)
            #expect(try await isLiked() == true)
            #expect(await scene.count("PUT", "/v1/posts/*/like") == 1)
            let truth = try scene.truth("/v1/feed", as: "ana", of: Post.self)
            #expect(truth.first { $0.id == id }?.likedByMe == true)
        }
    }

    // MARK: Posts

    @Test func `a post written and edited offline is shown, survives a kill, and is sent once with its last text`()
        async throws
    {
        let scene = try ClientScene()
        try await withKillable(scene) { killable in
            var client = try await client(scene, store: try killable.store())
            _ = try await client.cache.value(client.feed.newest)
            let before = try mine(scene, client).count
            goOffline()
            let id = try client.feed.create("first")
            try client.feed.edit(id, to: "second")
            killable.kill()
            client.close()
            client = try await self.client(scene, store: try killable.reopen())
            let local = try #require(try await shown(client).first)
            #expect(local.id == id && local.text == "second" && local.isPending)
            try client.feed.edit(id, to: "third")
            #expect(client.cache.outbox.entries.count == 1)
            try await goOnline(client, scene)
            let posts = try mine(scene, client)
            #expect(posts.count == before + 1 && posts.first?.text == "third")
            let items = try await shown(client)
            #expect(items.first?.id == posts.first?.id && !items.contains { $0.isPending })
            #expect(await scene.count("POST", "/v1/posts") == 1)
            #expect(await scene.count("PATCH", "/v1/posts/*") == 0)
            // A view may still have the local ID.
            try client.feed.edit(id, to: "fourth")
            #expect(try await shown(client).first?.text == "fourth")
            try await client.cache.outbox.drained()
            #expect(try mine(scene, client).first?.text == "fourth")
            try client.feed.delete(id)
            #expect(try await !shown(client).contains { $0.text == "fourth" })
            try await client.cache.outbox.drained()
            #expect(try mine(scene, client).count == before)
            #expect(client.cache.outbox.entries.isEmpty)
            await scene.expectGoodConduct()
            client.close()
        }
    }

    @Test func `the deletion of a post that was not sent cancels its creation, and nothing is sent`() async throws {
        let scene = try ClientScene()
        let client = try await client(scene)
        _ = try await client.cache.value(client.feed.newest)
        goOffline()
        let (kept, dropped) = (try client.feed.create("kept"), try client.feed.create("dropped"))
        try client.feed.edit(dropped, to: "dropped, edited")
        #expect(try client.feed.delete(dropped) == nil)
        #expect(try await shown(client).first?.id == kept)
        #expect(client.cache.outbox.entries.count == 1)
        try await goOnline(client, scene)
        #expect(await scene.count("POST", "/v1/posts") == 1)
        #expect(await scene.count("DELETE", "/v1/posts/*") == 0)
        #expect(try mine(scene, client).first?.text == "kept")
        client.close()
    }

    @Test(arguments: [false, true])
    func `changes of a post whose creation is in doubt wait for it, and use its server ID`(_ isDeletion: Bool)
        async throws
    {
        let scene = try ClientScene()
        try await withKillable(scene) { killable in
            var client = try await client(scene, store: try killable.store())
            _ = try await client.cache.value(client.feed.newest)
            let before = try mine(scene, client).count
            try scene.world.set(Gate(when: FaultMatch("POST", "/v1/posts"), count: 1))
            let id = try client.feed.create("first")
            // The server has created the post, and its reply is held.
            #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
            killable.kill()
            client.close()
            goOffline()
            client = try await self.client(scene, store: try killable.reopen())
            #expect(client.cache.outbox.status.inDoubt == 1)
            try client.feed.edit(id, to: "second")
            if isDeletion { #expect(try client.feed.delete(id) != nil) }
            #expect(try await shown(client).first { $0.id == id }?.text == (isDeletion ? nil : "second"))
            #expect(client.cache.outbox.entries.count == 2)
            scene.world.releaseAll()
            try await goOnline(client, scene)
            let posts = try mine(scene, client)
            #expect(posts.count == before + (isDeletion ? 0 : 1))
            #expect(posts.contains { $0.text == "second" } == !isDeletion && !posts.contains { $0.text == "first" })
            #expect(try await shown(client).contains { $0.text == "second" } == !isDeletion)
            #expect(try await !shown(client).contains(where: \.isPending))
            #expect(client.cache.outbox.entries.isEmpty)
            client.close()
        }
    }

    @Test func `edits and deletions of known posts are made offline, also if their replies are lost`() async throws {
        let scene = try ClientScene()
        let client = try await client(scene)
        let (first, second) = (try client.feed.create("one"), try client.feed.create("two"))
        try await client.cache.outbox.drained()
        _ = try await client.cache.refresh(client.feed.newest)
        for method in ["PATCH", "DELETE"] {
            var once = Fault.Occurrence()
            once.count = 1
            try scene.world.set(
                Fault(id: method, .loseReply(.reset), when: FaultMatch(method, "/v1/posts/*"), occurrence: once)
            )
        }
        goOffline()
        try client.feed.edit(first, to: "one, edited")
        try client.feed.delete(second)
        let texts = try await shown(client).map(\.text)
        #expect(texts.contains("one, edited") && !texts.contains("one") && !texts.contains("two"))
        try await goOnline(client, scene)
        let truth = try mine(scene, client).map(\.text)
        #expect(truth.contains("one, edited") && !truth.contains("one") && !truth.contains("two"))
        #expect(client.cache.outbox.entries.isEmpty)
        #expect(await scene.count("DELETE", "/v1/posts/*") == 2)
        client.close()
    }

    @Test func `an edit of another user's post is rejected and rolled back`() async throws {
        let scene = try ClientScene()
        let client = try await client(scene)
        let other = try #require(
            try await client.cache.value(client.feed.newest).items.first { $0.authorID != client.session.userID }
        )
        goOffline()
        try client.feed.edit(other.id, to: "mine now")
        #expect(try await shown(client).contains { $0.text == "mine now" })
        try await goOnline(client, scene)
        #expect(try await shown(client).first { $0.id == other.id }?.text == other.text)
        #expect(client.cache.outbox.rejected.first?.rejection?.status == 403)
        let long = String(repeating: "x", count: 2_001)
        #expect(throws: LarderError.self) { try client.feed.create(long) }
        #expect(throws: LarderError.self) { try client.feed.edit(other.id, to: "") }
        client.close()
    }

    // MARK: Messages

    @Test func `messages are sent, edited and deleted offline, in order and across a kill`() async throws {
        let scene = try ClientScene()
        try await withKillable(scene) { killable in
            var client = try await client(scene, store: try killable.store())
            let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first).id
            let messages = client.chat.messages(conversation)
            _ = try await client.cache.value(messages)
            let path = "/v1/conversations/\(conversation)/messages"
            try client.chat.send("old", to: conversation)
            try client.chat.send("gone", to: conversation)
            try await client.cache.outbox.drained()
            let known = try await client.cache.value(messages, .cacheOnly).items
            let old = try #require(known.first { $0.text == "old" })
            let gone = try #require(known.first { $0.text == "gone" })
            goOffline()
            for text in ["a", "b", "c"] { try client.chat.send(text, to: conversation) }
            let local = try await client.cache.value(messages, .cacheOnly).items.prefix(3)
            #expect(local.map(\.text) == ["c", "b", "a"] && local.allSatisfy(\.isPending))
            try client.chat.edit(local[2].id, in: conversation, to: "a, edited")
            #expect(try client.chat.delete(local[1].id, in: conversation) == nil)
            try client.chat.edit(old.id, in: conversation, to: "old, edited")
            try client.chat.delete(gone.id, in: conversation)
            killable.kill()
            client.close()
            client = try await self.client(scene, store: try killable.reopen())
            let shown = try await client.cache.value(messages, .cacheOnly).items.map(\.text)
            #expect(Array(shown.prefix(3)) == ["c", "a, edited", "old, edited"] && !shown.contains("gone"))
            for method in ["POST", "PATCH", "DELETE"] {
                var once = Fault.Occurrence()
                once.count = 1
                try scene.world.set(
                    Fault(id: method, .loseReply(.reset), when: FaultMatch(method, "/v1/**"), occurrence: once)
                )
            }
            try await goOnline(client, scene)
            let truth = try scene.truth(path, as: "ana", of: Message.self).map(\.text)
            #expect(Array(truth.prefix(3)) == ["c", "a, edited", "old, edited"] && !truth.contains("gone"))
            #expect(truth.count { $0 == "a, edited" } == 1 && !truth.contains("b"))
            let now = try await client.cache.value(messages, .cacheOnly).items
            #expect(Array(now.map(\.text).prefix(3)) == ["c", "a, edited", "old, edited"])
            #expect(!now.contains(where: \.isPending) && client.cache.outbox.entries.isEmpty)
            // The local ID stays valid.
            try client.chat.edit(local[0].id, in: conversation, to: "c, edited")
            try await client.cache.outbox.drained()
            #expect(try scene.truth(path, as: "ana", of: Message.self).first?.text == "c, edited")
            client.close()
        }
    }

    @Test func `an edit of a message that was deleted elsewhere ends, and the message disappears`() async throws {
        let scene = try ClientScene()
        let client = try await client(scene)
        let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first).id
        let messages = client.chat.messages(conversation)
        _ = try await client.cache.value(messages)
        try client.chat.send("hello", to: conversation)
        try await client.cache.outbox.drained()
        let message = try #require(try await client.cache.value(messages, .cacheOnly).items.first)
        #expect(scene.world.perform(ScriptedAction("DELETE", "/v1/messages/\(message.id)", as: "ana")).status == 204)
        try client.chat.edit(message.id, in: conversation, to: "hello?")
        try client.chat.send("next", to: conversation)
        try await client.cache.outbox.drained()
        #expect(client.cache.outbox.entries.isEmpty)
        #expect(try await client.cache.value(messages, .cacheOnly).items.first?.text == "next")
        #expect(try await !client.cache.value(messages, .cacheOnly).items.contains { $0.id == message.id })
        client.close()
    }

    // MARK: Balances

    @Test func `the last known balances are shown with their age after a restart, and a transfer needs new ones`()
        async throws
    {
        let scene = try ClientScene()
        var client = try await client(scene)
        let known = try await client.cache.snapshot(client.bank.accounts)
        let accounts = try #require(known.value?.items)
        _ = try await client.cache.value(client.bank.transactions(accounts[0].id))
        let read = scene.clock.now
        client.close()
        scene.clock.advance(by: .seconds(3_600))
        goOffline()
        client = try await self.client(scene)
        let old = try await client.cache.snapshot(client.bank.accounts)
        #expect(old.value?.items == accounts && old.source != .network)
        if case .stale = old.freshness {} else { Issue.record("\(old.freshness)") }
        #expect(old.validatedAt == read)
        #expect(try await client.cache.snapshot(client.bank.transactions(accounts[0].id)).value != nil)
        let gate = await #expect(throws: LarderError.self) { try await client.bank.validatedAccounts() }
        #expect(gate?.code == .notValidated && gate?.description.contains("1 h ago") ?? false)
        isOnline.withLock { $0 = true }
        let balances = try await client.bank.validatedAccounts()
        #expect(balances.value.items == accounts && balances.validatedAt == scene.clock.now)
        // They expire before the transfer.
        scene.clock.advance(by: .seconds(31))
        let order = Bank.TransferOrder(from: accounts[0].id, to: accounts[0].id, Money(minorUnits: 1, currency: "EUR"))
        let expired = await #expect(throws: LarderError.self) { try await client.bank.transfer(order, given: balances) }
        #expect(expired?.code == .notValidated && client.bank.unresolved.isEmpty)
        #expect(await scene.count("POST", "/v1/transfers") == 0)
        client.close()
    }
}

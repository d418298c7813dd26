import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@Suite("Paged conversations, end to end", .oneMinute)
struct ChatTimelineTests {
    private struct Stage {
        let scene: ClientScene
        let client: LarderClient
        let id: String
        let friend: String
        var path: String { "/v1/conversations/\(id)/messages" }
        var truth: [Message] { get throws { try scene.truth(path, as: "ana") } }

        func write(_ text: String, as handle: String) throws -> Message {
            try scene.act("POST", path, as: handle, #"{"text":"\#(text)","clientId":"\#(text)"}"#)
        }

        func edit(_ message: Message, _ text: String) throws {
            let author = try scene.handle(message.authorID)
            let _: Message = try scene.act("PATCH", "/v1/messages/\(message.id)", as: author, #"{"text":"\#(text)"}"#)
        }

        func delete(_ message: Message) throws {
            scene.delete("/v1/messages/\(message.id)", as: try scene.handle(message.authorID))
        }
    }

    private func stage(messages: Int, live kinds: [LiveSync.Kind] = []) async throws -> Stage {
        let scene = try ClientScene()
        let client = try await scene.client(live: kinds)
        let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first)
        let other = try #require(conversation.memberIDs.first { $0 != client.session.userID })
        let stage = Stage(scene: scene, client: client, id: conversation.id, friend: try scene.handle(other))
        for index in 0..<messages { _ = try stage.write("m\(index)", as: index % 3 == 0 ? "ana" : stage.friend) }
        try await client.sync.catchUp()
        return stage
    }

    @Test
    func `scrolling through two hundred messages while others change them ends with the server's messages`()
        async throws
    {
        let stage = try await stage(messages: 200)
        let (scene, client) = (stage.scene, stage.client)
        let timeline = client.chat.timeline(stage.id)
        let seen = SequenceRecorder(timeline.snapshots)
        await seen.wait { $0.last?.freshness == .fresh }
        let start = try stage.truth
        #expect(start.count >= 200)
        #expect(try await timeline.snapshot().items == Array(start.prefix(50)))
        #expect(try await timeline.loadOlder() == .more)

        // A page is in flight while its messages are edited and deleted by events: the page is older than the stored state.
        try scene.world.set(Gate(when: FaultMatch("GET", stage.path), count: 1))
        let older = Task { try await timeline.loadOlder() }
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        try stage.edit(start[110], "edited on its way")
        try stage.delete(start[120])
        try stage.edit(start[70], "edited on the screen")
        try stage.delete(start[80])
        // The message that the cursor of the next page refers to.
        try stage.delete(start[149])
        try stage.edit(start[199], "edited before it is loaded")
        _ = try stage.write("new one", as: stage.friend)
        _ = try stage.write("from my tablet", as: "ana")
        try await client.sync.catchUp()
        #expect(scene.world.releaseAll() == 1)
        #expect(try await older.value == .more)
        let three = try await timeline.snapshot().items
        #expect(three == Array(try stage.truth.prefix(three.count)) && three.count == 149)

        // Unsent messages stay in front.
        client.cache.outbox.pause()
        try client.chat.send("typed here", to: stage.id)
        try client.chat.send("and this", to: stage.id)
        _ = try stage.write("meanwhile", as: stage.friend)
        try await client.sync.catchUp()
        let typed = try await timeline.snapshot()
        #expect(typed.items.prefix(3).map(\.text) == ["and this", "typed here", "meanwhile"])
        #expect(typed.items.prefix(3).map(\.isPending) == [true, true, false] && typed.pendingChanges == 2)
        while try await timeline.loadOlder() == .more {}
        #expect(try await timeline.snapshot().items.prefix(2).allSatisfy { $0.isPending })
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        let all = try await timeline.snapshot()
        let truth = try stage.truth
        #expect(all.items == truth && all.hasReachedEnd && all.heldBackCount == 0)
        #expect(truth.prefix(2).map(\.text) == ["and this", "typed here"])
        #expect(all.items.contains { $0.text == "edited before it is loaded" })

        // Loaded pages are available without a request, also in another process and without a network.
        let pages = await scene.count("GET", stage.path)
        #expect(pages == (truth.count + 50) / 50)
        let deleted = Set([start[80].id, start[120].id, start[149].id])
        await seen.wait { $0.last?.items == truth }
        expectMonotonic(seen.elements.map(\.items), deleted: deleted)
        client.close()
        let again = try await scene.client(isOnline: { false })
        #expect(try await again.chat.timeline(stage.id).snapshot().items == truth)
        await scene.expectGoodConduct()
    }

    @Test func `a message that the feed delivers before its acknowledgement is shown once`() async throws {
        let stage = try await stage(messages: 3)
        let (scene, client) = (stage.scene, stage.client)
        let timeline = client.chat.timeline(stage.id)
        let seen = SequenceRecorder(timeline.snapshots)
        let list = SequenceRecorder(client.cache.snapshots(client.chat.messages(stage.id)))
        await seen.wait { $0.last?.freshness == .fresh }
        await list.wait { $0.last?.freshness == .fresh }
        try scene.world.set(Gate(when: FaultMatch("POST", stage.path), count: 1))
        try client.chat.send("once", to: stage.id)
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        // The server has the message, but the reply is held; the change feed delivers it first.
        #expect(try await client.sync.catchUp() > 0)
        #expect(try await timeline.snapshot().items.first?.isPending == false)
        scene.world.releaseAll()
        try await client.cache.outbox.drained()
        await seen.wait { $0.last.map { $0.pendingChanges == 0 && $0.items.first?.text == "once" } ?? false }
        await list.wait { $0.last.map { $0.pendingChanges == 0 && $0.value?.items.first?.text == "once" } ?? false }
        for items in seen.elements.map(\.items) + list.elements.compactMap({ $0.value?.items }) {
            #expect(items.count { $0.text == "once" } <= 1)
        }
        #expect(try await timeline.snapshot().items == Array(try stage.truth.prefix(50)))
        // The list and the timeline are fetched separately, each with its own validator.
    }

    @Test func `a message edited before the first sync is in its place, and a deleted one is absent`()
        async throws
    {
        let stage = try await stage(messages: 60)
        let client = stage.client
        let timeline = client.chat.timeline(stage.id)
        try await timeline.refresh()
        let first = try stage.write("a", as: stage.friend)
        let second = try stage.write("b", as: stage.friend)
        try stage.delete(try stage.write("c", as: stage.friend))
        // The feed orders messages by their last change.
        try stage.edit(second, "b, edited")
        try stage.edit(first, "a, edited")
        try await client.sync.catchUp()
        let items = try await timeline.snapshot().items
        #expect(items.prefix(2).map(\.text) == ["b, edited", "a, edited"])
        #expect(items == Array(try stage.truth.prefix(items.count)))
        try await timeline.refresh()
        #expect(try await timeline.snapshot().items == items)
    }

    @Test func `a conversation opens at an old message, is read in both directions, and works offline afterwards`()
        async throws
    {
        let stage = try await stage(messages: 200)
        let (scene, client) = (stage.scene, stage.client)
        let truth = try stage.truth
        let timeline = client.chat.timeline(stage.id)
        try await timeline.refresh()
        // As from a search.
        try await timeline.open(at: truth[150].id)
        var shown = try await timeline.snapshot()
        #expect(shown.items == Array(truth[..<50] + truth[126..<176]))
        #expect(shown.completeness == .gapped(1) && shown.pages.count == 2)
        #expect(try await timeline.loadOlder() == .finished)
        #expect(try await timeline.loadNewer() == .more)
        shown = try await timeline.snapshot()
        #expect(shown.items == Array(truth[..<50] + truth[76...]) && shown.completeness == .gapped(1))

        // Others write and edit meanwhile: the feed keeps what is loaded right.
        try stage.edit(truth[150], "edited on the screen")
        try stage.delete(truth[130])
        _ = try stage.write("new one", as: stage.friend)
        try await client.sync.catchUp()
        #expect(try await timeline.loadNewer() == .finished)
        let present = try stage.truth
        #expect(try await timeline.snapshot().items == present)
        #expect(await scene.count("GET", stage.path) == 5)
        client.close()
        let again = try await scene.client(isOnline: { false })
        let offline = again.chat.timeline(stage.id)
        try await offline.open(at: truth[150].id)
        #expect(try await offline.snapshot().items == present)
        await scene.expectGoodConduct()
    }

    @Test func `what is on screen is confirmed without a second download, and the rest keeps its age`() async throws {
        let stage = try await stage(messages: 120)
        let (scene, client) = (stage.scene, stage.client)
        let timeline = client.chat.timeline(stage.id)
        try await timeline.refresh()
        try await timeline.loadOlder()
        try await timeline.loadOlder()
        #expect(try await timeline.snapshot().freshness == .fresh)
        // The feed has not caught up for too long.
        scene.clock.advance(by: .seconds(300))
        var shown = try await timeline.snapshot()
        #expect(shown.pages.map(\.freshness.isFresh) == [false, false, false])
        let before = await scene.world.journal(JournalFilter("GET", stage.path)).count
        try await timeline.refresh(around: [shown.items[60].id, shown.items[70].id])
        shown = try await timeline.snapshot()
        #expect(shown.freshness(of: 60..<71) == .fresh && shown.freshness(of: 110..<112) != .fresh)
        // The reader's policy refreshes the newest page besides.
        let requests = await scene.world.journal(JournalFilter("GET", stage.path)).dropFirst(before)
        let pages = requests.filter { $0.target.contains("after=") }
        #expect(pages.count == 1 && pages.first?.status == 304)
    }

    @Test func `new messages can be counted and held back until they are taken`()
        async throws
    {
        let stage = try await stage(messages: 10)
        let client = stage.client
        let timeline = client.chat.timeline(stage.id, readerIsAtTop: false)
        let seen = SequenceRecorder(timeline.snapshots)
        await seen.wait { $0.last?.freshness == .fresh }
        let before = try await timeline.snapshot().items
        _ = try stage.write("hidden", as: stage.friend)
        try await client.sync.catchUp()
        await seen.wait { $0.last?.heldBackCount == 1 }
        #expect(seen.elements.last?.items == before)
        try client.chat.send("mine", to: stage.id)
        await seen.wait { $0.last?.items.first?.text == "mine" }
        try await client.cache.outbox.drained()
        await seen.wait { $0.last?.items.first?.isPending == false }
        #expect(seen.elements.last?.heldBackCount == 1)
        #expect(timeline.showHeldBack() == 1)
        await seen.wait { $0.last?.heldBackCount == 0 }
        #expect(seen.elements.last?.items.prefix(2).map { $0.text } == ["mine", "hidden"])
    }

    @Test func `a refresh that started before a message was written does not remove it`()
        async throws
    {
        let stage = try await stage(messages: 3)
        let (scene, client) = (stage.scene, stage.client)
        let timeline = client.chat.timeline(stage.id)
        try await timeline.refresh()
        _ = try await client.cache.value(client.chat.messages(stage.id))
        scene.clock.advance(by: .seconds(1))
        _ = try stage.write("before", as: stage.friend)
        // Each request is held once: one with an outdated 304 is repeated.
        try scene.world.set(Gate(when: FaultMatch("GET", stage.path), count: 2))
        let list = Task { try await client.cache.refresh(client.chat.messages(stage.id)).value?.items ?? [] }
        let pages = Task { try await timeline.refresh() }
        // Both refreshes join one request: the list and the timeline are one value.
        #expect(await scene.world.wait(for: .held(1), limit: .seconds(3_600)))
        _ = try stage.write("between", as: stage.friend)
        try await client.sync.catchUp()
        scene.world.releaseAll()
        try await pages.value
        // No message is missing, neither of the replies nor of the later events.
        #expect(try await list.value.prefix(2).map(\.text) == ["between", "before"])
        #expect(try await timeline.snapshot().items.prefix(2).map(\.text) == ["between", "before"])
    }

    @Test func `a deleted message stays deleted although a lagging replica returns it, also after a restart`()
        async throws
    {
        let stage = try await stage(messages: 10)
        let (scene, client) = (stage.scene, stage.client)
        let messages = try stage.truth
        try await client.chat.timeline(stage.id).refresh()
        _ = try await client.cache.value(client.chat.messages(stage.id))
        // The replica has the first new message, so its reply is not a 304, but lacks the next change.
        _ = try stage.write("new", as: stage.friend)
        try stage.delete(messages[4])
        try await client.sync.catchUp()
        try scene.world.set(Fault(.lag(.init(commits: 1)), when: FaultMatch("GET", stage.path)))
        func expectGone(_ client: LarderClient) async throws {
            scene.clock.advance(by: .seconds(1))
            let timeline = client.chat.timeline(stage.id)
            try await timeline.refresh()
            let list = try await client.cache.refresh(client.chat.messages(stage.id)).value?.items ?? []
            for items in [try await timeline.snapshot().items, list] {
                #expect(items.count > 5 && !items.contains { $0.id == messages[4].id })
            }
        }
        try await expectGone(client)
        client.close()
        let again = try await scene.client()
        try await expectGone(again)
        #expect(await scene.count("GET", stage.path, status: "200") >= 2)
        again.close()
    }

    @Test func `two devices with lost and duplicated events end with the server's messages`() async throws {
        let stage = try await stage(messages: 0, live: [.webSocket])
        let (scene, phone) = (stage.scene, stage.client)
        let other = try await scene.client(stage.friend, device: "tablet", live: [.webSocket])
        let devices = [phone, other]
        var seen: [SequenceRecorder<Timeline<Message>.Snapshot>] = []
        for device in devices {
            await SequenceRecorder(device.live.states).wait { $0.last == .live(.webSocket) }
            let recorder = SequenceRecorder(device.chat.timeline(stage.id).snapshots)
            await recorder.wait { $0.last?.freshness == .fresh }
            seen.append(recorder)
        }
        var bad = LiveFault()
        bad.lose = 0.1
        bad.duplicate = 0.1
        try scene.world.set(Fault(.live(bad)))
        for index in 0..<30 {
            for device in devices { try device.chat.send("\(index)", to: stage.id) }
            if index.isMultiple(of: 5) { for device in devices { try await device.cache.outbox.drained() } }
        }
        for device in devices { try await device.cache.outbox.drained() }
        let sent = try stage.truth.prefix(60)
        try stage.edit(sent[7], "edited")
        try stage.delete(sent[20])
        scene.world.removeFaults()
        // The last event arrives, and its token reveals the lost ones.
        #expect(scene.edit(as: stage.friend, #"{"bio":"done"}"#) == 200)
        let truth = try stage.truth
        for recorder in seen {
            await recorder.wait { $0.last.map { $0.items == Array(truth.prefix($0.items.count)) } ?? false }
            #expect((recorder.elements.last?.items.count ?? 0) >= 59)
            expectMonotonic(recorder.elements.map { $0.items.filter { !$0.isPending } }, deleted: [sent[20].id])
        }
        await scene.expectGoodConduct()
        for device in devices { device.close() }
    }

    @Test func `a token that expires between two pages of a sync is renewed once, and no page is skipped`()
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client()
        try await client.sync.catchUp()
        let friend = try scene.handle("user_2")
        var posts: [Post] = []
        for index in 0..<1_100 {
            posts.append(try scene.act("POST", "/v1/posts", as: friend, #"{"text":"\#(index)"}"#))
        }
        let before = await scene.count("GET", "/v1/changes")
        var second = Fault.Occurrence()
        second.after = 1
        second.count = 1
        try scene.world.set(Fault(.expireToken, when: FaultMatch("GET", "/v1/changes"), occurrence: second))
        #expect(try await client.sync.catchUp() == 1_100)
        #expect(await scene.count("POST", "/v1/sessions/refresh") == 1)
        // Three pages, and the one with the 401 again.
        #expect(await scene.count("GET", "/v1/changes") - before == 4)
        for post in posts { #expect(try await client.cache.value(client.feed.post(post.id), .cacheOnly) == post) }
        await scene.expectGoodConduct()
    }
}

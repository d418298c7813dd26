import Foundation
import LarderBackend
import LarderDemo
import LarderModels
import LarderResources
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderServer

@Suite("Chat and live changes, end to end", .oneMinute)
struct ChatTests {
    private func conversation(_ client: LarderClient) async throws -> Conversation {
        try #require(try await client.cache.value(client.chat.conversations).items.first)
    }

    private func other(_ conversation: Conversation, _ client: LarderClient, _ scene: ClientScene) async throws
        -> String
    {
        let id = try #require(conversation.memberIDs.first { $0 != client.session.userID })
        return try #require(try await client.profiles.profile(id).value).handle
    }

    @Test(arguments: LiveSync.Kind.allCases)
    func `a message of another user is shown without a read, by every kind of channel`(_ kind: LiveSync.Kind)
        async throws
    {
        let scene = try ClientScene()
        let client = try await scene.client(live: [kind])
        let conversation = try await conversation(client)
        let friend = try await other(conversation, client, scene)
        let states = SequenceRecorder(client.live.states)
        // The change feed covers what is read after its first token. A long poll is live with its first reply; before it, what is missed
        // is read, and a list that is asked for beside that is asked for again.
        if kind == .longPoll {
            await reached { scene.world.world.live.readerCount > 0 }
        } else {
            await states.wait { $0.last == .live(kind) }
        }
        let seen = SequenceRecorder(client.cache.snapshots(client.chat.messages(conversation.id)))
        await seen.wait { $0.last?.freshness == .fresh }
        let result = scene.world.perform(
            ScriptedAction(
                "POST",
                "/v1/conversations/\(conversation.id)/messages",
                as: friend,
                body: #"{"text":"hello from \#(kind.rawValue)","clientId":"c1"}"#
            )
        )
        #expect(result.status == 201)
        await seen.wait { $0.last?.value?.items.first?.text == "hello from \(kind.rawValue)" }
        #expect(await scene.count("GET", "/v1/conversations/*/messages") == 1)
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `messages sent offline are shown, sent in order, and exist once`() async throws {
        let scene = try ClientScene()
        let online = Mutex(true)
        var client = try await scene.client(isOnline: { online.withLock { $0 } })
        let conversation = try await conversation(client)
        _ = try await client.cache.value(client.chat.messages(conversation.id))
        online.withLock { $0 = false }
        for text in ["one", "two", "three"] { try client.chat.send(text, to: conversation.id) }
        func shown() async throws -> [String] {
            try await client.cache.value(client.chat.messages(conversation.id), .cacheOnly).items.prefix(3).map(\.text)
        }
        #expect(try await shown() == ["three", "two", "one"])
        client.close()
        client = try await scene.client(isOnline: { online.withLock { $0 } })
        #expect(try await shown() == ["three", "two", "one"])
        let pending = try await client.cache.value(client.chat.messages(conversation.id), .cacheOnly).items.prefix(3)
        #expect(pending.allSatisfy { $0.isPending })
        var once = Fault.Occurrence()
        once.count = 1
        try scene.world.set(
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/conversations/*/messages"), occurrence: once)
        )
        online.withLock { $0 = true }
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        #expect(try await shown() == ["three", "two", "one"])
        let tablet = try await scene.client(device: "tablet")
        let there = try await tablet.cache.value(tablet.chat.messages(conversation.id)).items.prefix(4).map(\.text)
        #expect(Array(there.prefix(3)) == ["three", "two", "one"] && there[3] != "one")
        await scene.expectGoodConduct()
    }

    @Test func `the photo of a message that is too long is not uploaded`() async throws {
        let scene = try ClientScene()
        let steps = Mutex<[OutboxStep]>([])
        let client = try await scene.client(onEvent: { event in
            if case .outbox(let step, _) = event { steps.withLock { $0.append(step) } }
        })
        let conversation = try await conversation(client)
        let directory = try ScratchDirectory()
        let photo = directory.path + "/photo.png"
        try Data("a photo".utf8).write(to: URL(fileURLWithPath: photo))
        let text = String(repeating: "x", count: 4_001)
        let error = await #expect(throws: LarderError.self) {
            try await client.send(text, photo: photo, to: conversation.id)
        }
        #expect(error?.code == .invalidArgument)
        #expect(steps.withLock { $0 }.isEmpty)
        client.close()
    }

    @Test func `a channel that loses and duplicates events ends with the server's messages`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client(live: [.webSocket])
        let conversation = try await conversation(client)
        let friend = try await other(conversation, client, scene)
        let states = SequenceRecorder(client.live.states)
        await states.wait { $0.last == .live(.webSocket) }
        let seen = SequenceRecorder(client.cache.snapshots(client.chat.messages(conversation.id)))
        await seen.wait { $0.last?.freshness == .fresh }
        var bad = LiveFault()
        bad.lose = 0.1
        bad.duplicate = 0.1
        try scene.world.set(Fault(.live(bad)))
        for index in 0..<60 {
            scene.world.perform(
                ScriptedAction(
                    "POST",
                    "/v1/conversations/\(conversation.id)/messages",
                    as: friend,
                    body: #"{"text":"m\#(index)","clientId":"c\#(index)"}"#
                )
            )
        }
        scene.world.removeFaults()
        // The last event arrives, and its token reveals the lost ones.
        #expect(scene.edit(as: friend, #"{"bio":"done"}"#) == 200)
        let expected = (0..<50).map { "m\(59 - $0)" }
        await seen.wait { $0.last?.value.map { Array($0.items.prefix(50).map(\.text)) == expected } ?? false }
        #expect(seen.elements.last?.value?.items.prefix(50).map { $0.text } == expected)
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `an edit and a deletion by others are shown, and the deleted message never returns`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let conversation = try await conversation(client)
        try await client.sync.catchUp()
        let before = try await client.cache.value(client.chat.messages(conversation.id)).items
        let mine = try #require(before.first { $0.authorID == client.session.userID })
        let handle = try #require(try await client.profiles.profile(mine.authorID).value).handle
        scene.world.perform(
            ScriptedAction("PATCH", "/v1/messages/\(mine.id)", as: handle, body: #"{"text":"edited elsewhere"}"#)
        )
        try await client.sync.catchUp()
        let edited = try await client.cache.value(client.chat.messages(conversation.id), .cacheOnly)
        #expect(edited.items.first { $0.id == mine.id }?.text == "edited elsewhere")
        scene.world.perform(ScriptedAction("DELETE", "/v1/messages/\(mine.id)", as: handle))
        try await client.sync.catchUp()
        let deleted = try await client.cache.value(client.chat.messages(conversation.id), .cacheOnly)
        #expect(!deleted.items.contains { $0.id == mine.id } && deleted.items.count == before.count - 1)
        await scene.expectGoodConduct()
    }
}

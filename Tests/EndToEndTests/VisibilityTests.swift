import Foundation
import Larder
import LarderModels
import LarderResources
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Latency of changes, end to end", .oneMinute)
struct VisibilityTests {
    @Test(arguments: LiveSync.Kind.allCases)
    func `an edit elsewhere is shown while no clock moves, so no timer delays it`(
        _ kind: LiveSync.Kind
    ) async throws {
        let scene = try ClientScene()
        let client = try await scene.client(live: [kind])
        let conversation = try #require(try await client.cache.value(client.chat.conversations).items.first)
        let path = "/v1/conversations/\(conversation.id)/messages"
        let message: Message = try scene.act("POST", path, as: "ana", #"{"text":"first","clientId":"c"}"#)
        let states = SequenceRecorder(client.live.states)
        // The change feed covers what is read after its first token. A long poll is live with its first reply.
        if kind == .longPoll {
            await reached { client.sync.token != nil }
        } else {
            await states.wait { $0.last == .live(kind) }
        }
        let timeline = client.chat.timeline(conversation.id)
        let seen = SequenceRecorder(timeline.snapshots)
        await seen.wait { $0.last?.items.first?.id == message.id }
        let before = (scene.clock.uptime, scene.clock.now)
        for round in 0..<20 {
            let _: Message = try scene.act("PATCH", "/v1/messages/\(message.id)", as: "ana", #"{"text":"\#(round)"}"#)
            await seen.wait { $0.last?.items.first?.text == "\(round)" }
        }
        #expect((scene.clock.uptime, scene.clock.now) == before)
        expectMonotonic(seen.elements.map(\.items))
        // Each edit arrived as an event or in one long poll; no page of the feed was downloaded twice.
        let reads = await scene.count("GET", "/v1/changes")
        #expect(reads <= 22 + 4, "\(reads) reads of the change feed")
        #expect(await scene.count("GET", path) == 1)
        await scene.expectGoodConduct()
        client.close()
    }
}

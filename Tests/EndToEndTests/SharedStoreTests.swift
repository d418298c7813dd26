import Foundation
import Larder
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Two processes of one account, end to end", .oneMinute)
struct SharedStoreTests {
    @Test func `operations of both processes reach the server once, messages in order`()
        async throws
    {
        let scene = try ClientScene()
        let app = try await scene.client()
        let share = try await scene.client()
        #expect(share.session.userID == app.session.userID)
        let posts = try await app.cache.value(app.feed.newest).items
        let conversation = try #require(try await app.cache.value(app.chat.conversations).items.first).id
        _ = try await app.cache.value(app.chat.messages(conversation))
        var twice = Fault.Occurrence()
        twice.count = 2
        try scene.world.set(
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/likes"), occurrence: twice),
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/conversations/*/messages"), occurrence: twice)
        )
        for (index, post) in posts.prefix(20).enumerated() {
            try (index % 2 == 0 ? app : share).likes.set(!post.likedByMe, post.id)
        }
        let texts = (1...8).map { "message \($0)" }
        for (index, text) in texts.enumerated() {
            try (index % 2 == 0 ? share : app).chat.send(text, to: conversation)
        }
        app.cache.networkReturned()
        app.close()
        share.cache.networkReturned()
        try await share.cache.outbox.drained()
        #expect(share.cache.outbox.entries.isEmpty)
        let tablet = try await scene.client(device: "tablet")
        let hearts = Dictionary(
            uniqueKeysWithValues: try await tablet.cache.value(tablet.feed.newest).items.map { ($0.id, $0) }
        )
        for post in posts.prefix(20) {
            let now = try #require(hearts[post.id])
            #expect(now.likedByMe == !post.likedByMe)
            #expect(now.likeCount == post.likeCount + (post.likedByMe ? -1 : 1))
        }
        let there = try await tablet.cache.value(tablet.chat.messages(conversation)).items.map(\.text)
        #expect(Array(there.filter { texts.contains($0) }.reversed()) == texts)
        let findings = await scene.world.conduct.findings
        #expect(!findings.contains { [.keyMissing, .keyChanged].contains($0.rule) })
        // Signing out removes all files, lock files included.
        try await share.signOut()
        #expect(!scene.files(of: "ana"))
    }

    @Test func `a value fetched by one process is shown by the other without a request`() async throws {
        let scene = try ClientScene()
        let app = try await scene.client()
        let share = try await scene.client()
        let first = try #require(try await app.cache.value(app.feed.newest).items.first)
        // Both processes have the value in memory.
        #expect(try await share.cache.value(share.feed.newest, .cacheOnly).items.first == first)
        #expect(try await share.cache.value(share.feed.post(first.id), .cacheOnly) == first)
        try app.likes.set(!first.likedByMe, first.id)
        try await app.cache.outbox.drained()
        let known = try await app.cache.value(app.feed.post(first.id), .cacheOnly)
        #expect(known.version > first.version && known.likedByMe != first.likedByMe)
        scene.clock.advance(by: .milliseconds(100))
        #expect(try await share.cache.value(share.feed.post(first.id), .cacheOnly) == known)
        #expect(try await share.cache.value(share.feed.newest, .cacheOnly).items.first == known)
        #expect(await scene.count("GET", "/v1/feed") == 1)
    }
}

import Foundation
import Larder
import LarderModels
import LarderServer
import LarderStorage
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderDemo

@Suite("Taps over a bad network, end to end", .oneMinute)
struct LossyTapsTests {
    @Test func `an attempt of a tap that is carried out after the opposite tap changes nothing`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe })
        func isLiked() throws -> Bool? {
            try scene.truth("/v1/feed", as: "ana", of: Post.self).first { $0.id == post.id }?.likedByMe
        }
        client.cache.outbox.pause()
        try client.likes.set(true, post.id)
        let key = try #require(client.cache.outbox.entries.first).idempotencyKey
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        #expect(try isLiked() == true)
        try client.likes.set(false, post.id)
        try await client.cache.outbox.drained()
        #expect(try isLiked() == false)
        // An attempt of the first tap, under the key that the outbox has given to it.
        let body = #"{"items":[{"postId":"\#(post.id)","liked":true,"idempotencyKey":"\#(key)"}]}"#
        let late = scene.world.perform(ScriptedAction("POST", "/v1/likes", as: "ana", body: body))
        #expect(late.status == 200)
        #expect(try isLiked() == false)
        client.close()
    }

    @Test(arguments: seeds(1))
    func
        `five hundred taps on fifty posts over lossy Wi-Fi, killed at any statement in the middle, end with the last taps`(
            _ seed: UInt64
        ) async throws
    {
        let scene = try ClientScene()
        var random = SeededGenerator(seed: seed)
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let killable = KillableStore(DiskStore.Configuration(directory: directory, clock: scene.clock))
        var client = try await scene.client(store: try killable.store())
        let posts = try await client.cache.value(client.feed.newest).items
        try #require(posts.count == 50)
        // One second of the simulated network takes some milliseconds.
        scene.world.clock.run(factor: 400)
        try scene.world.set(.lossyWifi)
        var sometimes = Fault.Occurrence()
        sometimes.probability = 0.2
        try scene.world.set(
            Fault(.loseReply(.reset), when: FaultMatch("POST", "/v1/likes"), occurrence: sometimes)
        )
        let sent = JournalFilter("POST", "/v1/likes")
        var hearts = Dictionary(uniqueKeysWithValues: posts.map { ($0.id, $0.likedByMe) })
        var taps: [String: Int] = [:]
        var deaths = 0

        func shown(_ post: String) async throws -> Bool {
            try await client.cache.value(client.feed.post(post), .cacheOnly).likedByMe
        }

        for tap in 0..<500 {
            if tap.isMultiple(of: 10) {
                // Requests, losses and retries happen between the taps.
                let count = await scene.world.journal(sent).count
                while !killable.isDead, !client.cache.outbox.entries.isEmpty, !Task.isCancelled {
                    let next = WaitCondition.entries(sent, count: count + 1)
                    if await scene.world.wait(for: next, limit: .milliseconds(20)) { break }
                }
            }
            if tap == 250 { killable.kill(atStep: random.uniform(in: 1..<40), halfWay: seed.isMultiple(of: 2)) }
            let post = posts[random.uniform(in: 0..<50)].id
            taps[post, default: 0] += 1
            do {
                try client.likes.set(hearts[post] != true, post)
                hearts[post]?.toggle()
                #expect(try await shown(post) == hearts[post], "seed \(seed), tap \(tap)")
            } catch {
                // The process is dead. Earlier taps must survive; the current one may.
                deaths += 1
                try #require(killable.isDead && deaths == 1, "seed \(seed): \(error)")
                client.close()
                client = try await scene.client(store: try killable.reopen())
                hearts[post] = try await shown(post)
                for other in posts {
                    #expect(
                        try await shown(other.id) == hearts[other.id],
                        "seed \(seed), \(other.id) after the restart"
                    )
                }
            }
        }
        #expect(deaths == 1)
        // The random number of the scene makes each back-off zero.
        try await client.cache.outbox.drained()
        #expect(client.cache.outbox.entries.isEmpty)
        scene.world.removeFaults()

        let truth = try scene.truth("/v1/feed", as: "ana", of: Post.self)
        for before in posts {
            let after = try #require(truth.first { $0.id == before.id })
            let change = (after.likedByMe ? 1 : 0) - (before.likedByMe ? 1 : 0)
            #expect(after.likedByMe == hearts[before.id], "seed \(seed), \(before.id)")
            #expect(after.likeCount == before.likeCount + change, "seed \(seed), \(before.id)")
            // Each effective like is a version of the post: no tap had an effect twice.
            let effects = Int(after.version - before.version)
            #expect(effects <= taps[before.id] ?? 0 && effects % 2 == abs(change), "seed \(seed), \(before.id)")
        }
        let report = await scene.world.verify(
            .atLeast(3, sent),
            .atMost(500, sent),
            .none(JournalFilter("PUT", "/v1/**"))
        )
        #expect(report.holds, "seed \(seed): \(report)")
        await scene.expectGoodConduct()
        client.close()
    }
}

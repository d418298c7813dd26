import Foundation
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// A server with real pictures, and a client whose surroundings are made up.
private final class PictureScene: Sendable {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
    let backend: MockBackend
    let clock = ManualClock()
    let sources = HandSources()
    let transport = CutTransport()

    init() throws {
        backend = try MockBackend.startWithPictures(people: 10, posts: 40)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    func client(_ change: (inout LarderClient.Upkeep) -> Void = { _ in }) async throws -> LarderClient {
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        configuration.cache.sleeper = clock
        configuration.cache.random = { 0.5 }
        configuration.followsLive = false
        configuration.upkeep = sources.upkeep(change)
        let client = try await LarderClient(
            server: backend.url,
            account: "ana",
            directory: directory,
            configuration
        )
        if client.session.state == .signedOut { try await client.signIn(handle: "ana", password: "larder") }
        return client
    }

    /// Pictures of the feed that come in several widths.
    func pictures(_ client: LarderClient) async throws -> [Post.Image] {
        let posts = try await client.cache.value(client.feed.newest).items
        var seen: Set<String> = []
        return posts.compactMap(\.image).filter {
            $0.widths.contains(320) && $0.widths.contains(640) && seen.insert($0.id).inserted
        }
    }
}

@Suite("Pictures under pressure", .oneMinute)
struct UpkeepPictureTests {
    @Test func `constrained, smaller renditions are asked for, and what is in memory in full is shown in full`()
        async throws
    {
        let scene = try PictureScene()
        let client = try await scene.client()
        let images = try await scene.pictures(client)
        let (first, second) = (try #require(images.first), try #require(images.last))
        try #require(first.id != second.id)
        #expect(client.picture(first, width: 640).url.hasSuffix("width=640"))
        _ = try await client.images.image(for: client.picture(first, width: 640))
        client.network?.setOverride(.constrained)
        #expect(client.picture(first, width: 640).url.hasSuffix("width=640"), "It is in memory.")
        let small = client.picture(second, width: 640)
        #expect(small.url.hasSuffix("width=320") && small.target?.width == 640)
        let bytes = client.telemetry.totals.features["images"]?.bytesReceived ?? 0
        _ = try await client.images.image(for: small)
        let smaller = (client.telemetry.totals.features["images"]?.bytesReceived ?? 0) - bytes
        #expect(smaller > 0 && smaller < bytes, "\(smaller) of \(bytes)")
        client.network?.setOverride(.good)
        #expect(client.picture(second, width: 640).url.hasSuffix("width=640"))
        client.close()
        await scene.backend.stop()
    }

    @Test func `nothing is prefetched on a bad network, under pressure, or where the switch is off`() async throws {
        let scene = try PictureScene()
        let client = try await scene.client()
        let images = try await scene.pictures(client)
        try #require(images.count >= 4)
        let wanted = images[0].id
        let pressures: [(hold: () -> Void, release: () -> Void)] = [
            ({ client.network?.setOverride(.constrained) }, { client.network?.setOverride(nil) }),
            ({ scene.sources.memory.signal(.warning) }, { scene.sources.memory.signal(.normal) }),
            (
                { try? client.flags?.setOverride(false, for: LarderFlags.imagePrefetch) },
                { try? client.flags?.setOverride(nil, for: LarderFlags.imagePrefetch) }
            ),
        ]
        for (index, pressure) in pressures.enumerated() {
            pressure.hold()
            #expect(await eventually { client.images.state.withLock { $0.isPrefetchPaused } })
            do {
                let prefetch = client.images.prefetch([client.picture(images[0], width: 320)])
                // A picture that is asked for later overtakes it.
                _ = try await client.images.image(for: client.picture(images[index + 1], width: 320))
                withExtendedLifetime(prefetch) {}
            }
            #expect(!scene.transport.sent.contains { $0.contains(wanted) })
            pressure.release()
            // Memory recovers step by step.
            for _ in 0..<5 {
                scene.clock.advance(by: .seconds(20))
                client.memory?.tick()
            }
            #expect(await eventually { client.images.state.withLock { !$0.isPrefetchPaused } })
        }
        let last = client.images.prefetch([client.picture(images[0], width: 320)])
        #expect(await eventually { scene.transport.sent.contains { $0.contains(wanted) } })
        withExtendedLifetime(last) {}
        client.close()
        await scene.backend.stop()
    }

    @Test func `when memory is critical pixels and values go and stay gone, and it recovers`() async throws {
        let scene = try PictureScene()
        let client = try await scene.client()
        for image in try await scene.pictures(client) {
            _ = try await client.images.image(for: client.picture(image, width: 320))
        }
        let full = client.images.memoryCost
        #expect(full > 0)
        scene.sources.memory.signal(.critical)
        #expect(client.images.memoryCost == 0)
        let image = try #require(try await scene.pictures(client).first)
        _ = try await client.images.image(for: client.picture(image, width: 320))
        // The pressure lasts: what came meanwhile goes again.
        scene.sources.memory.signal(.critical)
        #expect(client.images.memoryCost == 0)
        scene.sources.memory.signal(.normal)
        for _ in 0..<10 {
            scene.clock.advance(by: .seconds(10))
            client.memory?.tick()
        }
        #expect(client.memory?.posture == .normal)
        _ = try await client.images.image(for: client.picture(image, width: 320))
        #expect(client.images.memoryCost > 0)
        let totals = client.telemetry.totals
        #expect(totals.memoryFreed >= full && totals.memoryChanges >= 2)
        #expect(totals.evictions[.memory]?["pressure"].map { $0.count > 0 } == true)
        client.close()
        await scene.backend.stop()
    }

    @Test func `everything that happens is told: tiers, requests, outbox, sync, pictures, levels`() async throws {
        let scene = try PictureScene()
        let client = try await scene.client()
        let events = client.telemetry.events(bufferedAtMost: 100_000)
        // Reads: the network, memory, disk, «not modified», one that joins another, one that a gate refuses.
        let posts = try await client.cache.value(client.feed.newest).items
        _ = try await client.cache.value(client.feed.newest)
        scene.clock.advance(by: .seconds(61))
        async let joined = client.cache.refresh(client.profiles.resource("user_2"))
        async let joining = client.profiles.profile("user_2")
        _ = try await (joined, joining)
        try await client.cache.refresh(client.feed.newest)
        client.cache.trimMemory(toBytes: 0)
        _ = try await client.cache.value(client.feed.newest)
        // The outbox: sent, coalesced, undone.
        let post = try #require(posts.first { !$0.likedByMe })
        client.cache.outbox.pause()
        try client.likes.set(true, post.id)
        try client.likes.set(true, post.id)
        try client.likes.set(false, post.id)
        try client.likes.set(true, post.id)
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        // What changes elsewhere.
        try await client.sync.catchUp()
        var change = PhantomAct("PATCH", "/v1/me", as: "ana", body: #"{"bio":"elsewhere"}"#)
        change.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
        #expect(scene.backend.main.perform(change).status == 200)
        try await client.sync.catchUp()
        // Pictures, and what the surroundings do.
        let image = try #require(try await scene.pictures(client).first)
        _ = try await client.images.image(for: client.picture(image, width: 320))
        _ = try await client.images.image(for: client.picture(image, width: 320))
        scene.sources.memory.signal(.critical)
        _ = try await client.images.image(for: client.picture(image, width: 320))
        scene.clock.advance(by: .seconds(61))
        scene.sources.network.set(isConnected: false)
        await #expect(throws: LarderError.self) {
            try await client.cache.requireValidated(client.feed.newest, within: .seconds(1))
        }
        #expect(await eventually { client.telemetry.totals.features["changes"]?.changesApplied ?? 0 > 0 })
        let totals = client.telemetry.totals
        let feed = try #require(totals.features["feed"])
        #expect(feed.reads[.network].map { $0.hits > 0 } == true, "\(feed.reads)")
        #expect(feed.reads[.memory].map { $0.hits > 0 && $0.misses > 0 } == true, "\(feed.reads)")
        #expect(feed.reads[.disk].map { $0.hits > 0 && $0.misses > 0 && $0.bytes > 1_000 } == true, "\(feed.reads)")
        #expect(feed.revalidations > 0 && feed.bytesSaved > 1_000, "\(feed.bytesSaved)")
        #expect(feed.gatesRefused == 1 && feed.firstContent.count > 0 && feed.requests.count > 0)
        #expect(feed.bytesReceived > 1_000 && totals.bytesBySource[.network].map { $0 > 1_000 } == true)
        #expect(totals.outbox[.enqueued] == 2 && totals.outbox[.coalesced] == 1 && totals.outbox[.cancelled] == 1)
        #expect(totals.outbox[.sent] == 1 && totals.outbox[.accepted] == 1 && totals.outboxDepth == 0)
        let pictures = try #require(totals.features["images"])
        #expect(totals.images[.download]?.count == 1 && totals.images[.decode]?.count ?? 0 >= 2)
        #expect(pictures.reads[.memory]?.hits == 1 && pictures.reads[.disk]?.hits == 1)
        #expect(totals.memoryLevel == .critical && totals.networkLevel == .offline)
        let kinds = Set(events.takeAvailable().map { $0.kind.name })
        for name in [
            "tierHit", "tierMiss", "eviction", "revalidated", "outbox", "sync", "image", "memoryLevel",
            "memoryReaction", "networkLevel", "gateRefused", "request", "firstContent",
        ] {
            #expect(kinds.contains(name), "\(name) is missing of \(kinds.sorted())")
        }
        #expect(totals.json.contains("\"firstContent\"") && totals.prometheus.contains("larder_first_content_seconds"))
        #expect(totals.prometheus.contains(#"larder_reads_total{feature="feed",tier="disk",result="hit"}"#))
        client.close()
        await scene.backend.stop()
    }
}

import Foundation
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderDemo
@testable import LarderImages
@testable import LarderResources

/// A server with real images, and a client with manual network and memory sources.
private final class ImageScene: Sendable {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
    let backend: MockBackend
    let clock = ManualClock()
    let sources = ManualSources()
    let transport = DisconnectableTransport()

    init() throws {
        backend = try MockBackend.startWithImages(people: 10, posts: 40)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    func client(_ change: (inout APIClient.Services) -> Void = { _ in }) async throws -> LarderClient {
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        configuration.cache.random = { 0.5 }
        configuration.followsLive = false
        configuration.services = sources.services(change)
        let client = try await LarderClient(
            server: backend.url,
            account: "ana",
            directory: directory,
            configuration
        )
        if client.session.state == .signedOut { try await client.signIn(handle: "ana", password: "larder") }
        return client
    }

    /// The images of the feed with several renditions.
    func images(_ client: LarderClient) async throws -> [Post.Image] {
        let posts = try await client.cache.value(client.feed.newest).items
        var seen: Set<String> = []
        return posts.compactMap(\.image).filter {
            $0.widths.contains(320) && $0.widths.contains(640) && seen.insert($0.id).inserted
        }
    }
}

@Suite("Images and telemetry under pressure", .oneMinute)
struct ClientServicesImageTests {
    @Test func `on a constrained network smaller renditions are requested, unless the full one is in memory`()
        async throws
    {
        let scene = try ImageScene()
        let client = try await scene.client()
        let images = try await scene.images(client)
        let (first, second) = (try #require(images.first), try #require(images.last))
        try #require(first.id != second.id)
        #expect(client.imageRequest(for: first, width: 640).url.hasSuffix("width=640"))
        _ = try await client.images.image(for: client.imageRequest(for: first, width: 640))
        client.network?.setOverride(.constrained)
        #expect(
            client.imageRequest(for: first, width: 640).url.hasSuffix("width=640"),
            "The full rendition is in memory."
        )
        let small = client.imageRequest(for: second, width: 640)
        #expect(small.url.hasSuffix("width=320") && small.target?.width == 640)
        let bytes = client.telemetry.totals.features["images"]?.bytesReceived ?? 0
        _ = try await client.images.image(for: small)
        let smaller = (client.telemetry.totals.features["images"]?.bytesReceived ?? 0) - bytes
        #expect(smaller > 0 && smaller < bytes, "\(smaller) of \(bytes)")
        client.network?.setOverride(.good)
        #expect(client.imageRequest(for: second, width: 640).url.hasSuffix("width=640"))
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `nothing is prefetched on a constrained network, under memory pressure, or with the flag off`()
        async throws
    {
        let scene = try ImageScene()
        let client = try await scene.client()
        let images = try await scene.images(client)
        try #require(images.count >= 4)
        let wanted = images[0].id
        let pressures: [(hold: () -> Void, release: () -> Void)] = [
            ({ client.network?.setOverride(.constrained) }, { client.network?.setOverride(nil) }),
            ({ scene.sources.memory.signal(.warning) }, { scene.sources.memory.signal(.normal) }),
            (
                { try? client.flags?.setOverride(false, for: .imagePrefetch) },
                { try? client.flags?.setOverride(nil, for: .imagePrefetch) }
            ),
        ]
        var ahead = client.imageRequest(for: images[0], width: 320)
        ahead.priority = .prefetch
        for (index, pressure) in pressures.enumerated() {
            pressure.hold()
            await reached { client.images.state.withLock { $0.isPrefetchPaused } }
            do {
                let prefetch = client.images.task(for: ahead)
                // A later request overtakes the prefetch.
                _ = try await client.images.image(for: client.imageRequest(for: images[index + 1], width: 320))
                withExtendedLifetime(prefetch) {}
            }
            #expect(!scene.transport.sent.contains { $0.contains(wanted) })
            pressure.release()
            // Memory recovers step by step.
            for _ in 0..<5 {
                scene.clock.advance(by: .seconds(20))
                client.memory?.tick()
            }
            await reached { client.images.state.withLock { !$0.isPrefetchPaused } }
        }
        let last = client.images.task(for: ahead)
        await reached { scene.transport.sent.contains { $0.contains(wanted) } }
        withExtendedLifetime(last) {}
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    /// Starts loads of pictures that are not in view while the user interacts, and waits until their files are there.
    private func waitingDecodes(_ scene: ImageScene, _ client: LarderClient) async throws -> [ImageTask] {
        let images = try await scene.images(client).prefix(2)
        client.idle?.interacted()
        let tasks = images.map { client.images.task(for: client.imageRequest(for: $0, width: 320)) }
        await reached { client.images.workload == (0, 2) }
        return tasks
    }

    @Test func `decodes that wait for an idle moment are dropped when memory is short`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let tasks = try await waitingDecodes(scene, client)
        try #require(tasks.count == 2 && client.idle?.isIdle == false)
        scene.sources.memory.signal(.critical)
        for task in tasks { await #expect(throws: ImageError.self) { try await task.image } }
        #expect(client.images.workload == (0, 0))
        // Their turn comes, and nothing is decoded.
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .milliseconds(100))
        await reached { client.idle?.isIdle ?? true }
        #expect(client.telemetry.totals.images[.decode] == nil)
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `with the flag off, decodes do not wait for an idle moment`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let waiting = try await waitingDecodes(scene, client)
        #expect(client.telemetry.totals.images[.decode] == nil)
        client.images.clearMemory()
        try client.flags?.setOverride(false, for: .idleDecoding)
        client.idle?.interacted()
        let image = try #require(try await scene.images(client).last)
        // The clock stands still.
        _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        #expect(client.telemetry.totals.images[.decode]?.count == 1 && client.images.workload == (0, 2))
        withExtendedLifetime(waiting) {}
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `critical memory evicts decoded images until the level recovers`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        for image in try await scene.images(client) {
            _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        }
        let full = client.images.memoryCost
        #expect(full > 0)
        scene.sources.memory.signal(.critical)
        #expect(client.images.memoryCost == 0)
        let image = try #require(try await scene.images(client).first)
        _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        // The pressure continues: new images are evicted too.
        scene.sources.memory.signal(.critical)
        #expect(client.images.memoryCost == 0)
        scene.sources.memory.signal(.normal)
        for _ in 0..<10 {
            scene.clock.advance(by: .seconds(10))
            client.memory?.tick()
        }
        #expect(client.memory?.limits == .normal)
        _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        #expect(client.images.memoryCost > 0)
        let totals = client.telemetry.totals
        #expect(totals.memoryFreed >= full && totals.memoryChanges >= 2)
        #expect(totals.evictions[.memory]?["pressure"].map { $0.count > 0 } == true)
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    // MARK: Telemetry

    /// The names of the recorded kinds of events.
    private func kinds(_ events: EventSequence<TelemetryEvent>) -> Set<String> {
        Set(events.takeAvailable().map { $0.kind.name })
    }

    @Test func `reads are counted by tier, with misses, revalidations and bytes`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let events = client.telemetry.events(bufferedAtMost: 100_000)
        _ = try await client.cache.value(client.feed.newest)
        _ = try await client.cache.value(client.feed.newest)
        scene.clock.advance(by: .seconds(61))
        try await client.cache.refresh(client.feed.newest)
        client.cache.trimMemory(toBytes: 0)
        _ = try await client.cache.value(client.feed.newest)
        let totals = client.telemetry.totals
        let feed = try #require(totals.features["feed"])
        #expect(feed.reads[.network].map { $0.hits > 0 } == true, "\(feed.reads)")
        #expect(feed.reads[.memory].map { $0.hits > 0 && $0.misses > 0 } == true, "\(feed.reads)")
        #expect(feed.reads[.disk].map { $0.hits > 0 && $0.misses > 0 && $0.bytes > 1_000 } == true, "\(feed.reads)")
        #expect(feed.revalidations > 0 && feed.bytesSaved > 1_000, "\(feed.bytesSaved)")
        #expect(feed.firstContent.count > 0, "first content")
        #expect(feed.requests.count > 0 && feed.bytesReceived > 1_000, "\(feed.bytesReceived)")
        #expect(totals.all.bytesReceived > 1_000, "\(totals.all)")
        let missing = Set(["tierHit", "tierMiss", "eviction", "revalidated", "request", "firstContent"])
            .subtracting(kinds(events))
        #expect(missing.isEmpty, "\(missing)")
        #expect(totals.json.contains("\"firstContentByTier\""))
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `outbox operations are counted by step`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let events = client.telemetry.events(bufferedAtMost: 100_000)
        let posts = try await client.cache.value(client.feed.newest).items
        let post = try #require(posts.first { !$0.likedByMe })
        client.cache.outbox.pause()
        for isLike in [true, false, true] { try client.likes.set(isLike, post.id) }
        // Its creation was not sent.
        try client.feed.delete(try client.feed.create("withdrawn"))
        client.cache.outbox.resume()
        try await client.cache.outbox.drained()
        let totals = client.telemetry.totals
        #expect(totals.outbox[.enqueued] == 2 && totals.outbox[.coalesced] == 2 && totals.outbox[.cancelled] == 1)
        #expect(totals.outbox[.sent] == 1 && totals.outbox[.accepted] == 1 && totals.outboxDepth == 0)
        #expect(kinds(events).contains("outbox"))
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `applied changes are counted`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let events = client.telemetry.events(bufferedAtMost: 100_000)
        _ = try await client.profiles.profile("user_2")
        try await client.sync.catchUp()
        var change = ScriptedAction("PATCH", "/v1/me", as: "ana", body: #"{"bio":"elsewhere"}"#)
        change.headers = ["If-Match": "*", "Content-Type": "application/merge-patch+json"]
        #expect(scene.backend.main.perform(change).status == 200)
        try await client.sync.catchUp()
        await reached { client.telemetry.totals.features["changes"]?.changesApplied ?? 0 > 0 }
        #expect(kinds(events).contains("sync"))
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `images are counted by tier and stage, and levels with their reactions`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let events = client.telemetry.events(bufferedAtMost: 100_000)
        let image = try #require(try await scene.images(client).first)
        _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        scene.sources.memory.signal(.critical)
        _ = try await client.images.image(for: client.imageRequest(for: image, width: 320))
        scene.sources.network.set(isConnected: false)
        let totals = client.telemetry.totals
        let images = try #require(totals.features["images"])
        #expect(totals.images[.download]?.count == 1 && totals.images[.decode]?.count ?? 0 >= 2, "\(totals.images)")
        #expect(images.reads[.memory]?.hits == 1 && images.reads[.disk]?.hits == 1, "\(images.reads)")
        #expect(totals.memoryLevel == .critical && totals.networkLevel == .offline)
        let missing = Set(["image", "memoryLevel", "memoryReaction", "networkLevel"]).subtracting(kinds(events))
        #expect(missing.isEmpty, "\(missing)")
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }

    @Test func `a gate that rejects a read is counted`() async throws {
        let scene = try ImageScene()
        let client = try await scene.client()
        let events = client.telemetry.events(bufferedAtMost: 100_000)
        _ = try await client.cache.value(client.feed.newest)
        scene.clock.advance(by: .seconds(61))
        scene.sources.network.set(isConnected: false)
        await #expect(throws: LarderError.self) {
            try await client.cache.requireValidated(client.feed.newest, within: .seconds(1))
        }
        #expect(client.telemetry.totals.features["feed"]?.gatesRejected == 1)
        #expect(kinds(events).contains("gateRejected"))
        client.close()
        #expect(await scene.backend.activity() == [])
        await scene.backend.stop()
    }
}

import Larder
import LarderDemo
import LarderHTTP
import LarderHTTPCache
import LarderModels
import LarderResources
import LarderServer
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@Suite("Client requests, push and switches, end to end", .oneMinute)
struct ClientRequestTests {
    private static let profile = "/v1/profiles/user_2"

    /// A scene whose server has the clients' clock.
    private func scene() throws -> ClientScene {
        let scene = try ClientScene()
        scene.world.clock.freeze(at: scene.clock.now)
        return scene
    }

    private func pass(_ scene: ClientScene, _ seconds: Int64) {
        scene.clock.advance(by: .seconds(seconds))
        scene.world.clock.advance(by: .seconds(seconds))
    }

    @Test func `a document is stored, confirmed with a renewed token, and shown offline`() async throws {
        let scene = try scene()
        let isOnline = Mutex(true)
        let client = try await scene.client(isOnline: { isOnline.withLock { $0 } })
        #expect(try await client.http.document(Self.profile).source == .network)
        #expect(try await client.http.document(Self.profile).source == .hit)
        #expect(await scene.count("GET", Self.profile) == 1)
        // The access token has expired as well.
        pass(scene, 3_600)
        #expect(try await client.http.document(Self.profile).source == .revalidated)
        #expect(await scene.count("GET", Self.profile, status: "304") == 1)
        #expect(await scene.count("POST", "/v1/sessions/refresh") == 1)
        isOnline.withLock { $0 = false }
        pass(scene, 3_600)
        #expect(try await client.http.document(Self.profile).source == .stale(.offline))
        let error = await #expect(throws: LarderError.self) { try await client.http.document("/v1/profiles/user_3") }
        #expect(error?.code == .offline)
        #expect(await scene.count("GET", "/v1/profiles/*") == 2)
        await scene.expectGoodConduct(saves: true)
        client.close()
    }

    @Test func `a push notification brings the missed changes, and a repeated one costs no request`() async throws {
        let scene = try ClientScene()
        let client = try await scene.client()
        let resource = client.profiles.resource("user_2")
        #expect(try await client.sync.catchUp() == 0)
        let before = try await client.cache.value(resource)
        #expect(scene.edit(as: try scene.handle("user_2"), #"{"bio":"pushed"}"#) == 200)
        #expect(try await client.received(push: ["aps": ["content-available": 1]]))
        let after = try await client.cache.value(resource)
        #expect(after.bio == "pushed" && after.version > before.version)
        #expect(await scene.count("GET", "/v1/profiles/user_2") == 1)
        let reads = await scene.count("GET", "/v1/changes")
        #expect(try await !client.received(push: ["token": client.sync.token ?? ""]), "A repeated one is not new.")
        #expect(await scene.count("GET", "/v1/changes") == reads)
        await scene.expectGoodConduct()
        client.close()
    }

    @Test func `the events of a backend invalidate values of an app that knows no change tokens`() async throws {
        let scene = try ClientScene()
        let directory = try ScratchDirectory()
        var configuration = APIClient.Configuration(transport: SocketTransport(clock: ManualClock()))
        configuration.cache.wallClock = scene.clock
        configuration.cache.monotonicClock = scene.clock
        configuration.cache.random = { 0 }
        configuration.services = .none
        configuration.events = APIClient.Events(.eventStream("/v1/live/events")) { update in
            update.invalidate(QueryKey("biography"))
        } apply: { event, update in
            if event.data.contains("user_2") { update.invalidate(QueryKey("biography")) }
        }
        let client = try await APIClient(
            server: scene.world.url,
            account: "ana",
            directory: directory.path,
            configuration
        )
        let source = client.source
        let biography = Resource<String>("biography", freshness: .timeToLive(.seconds(86_400))) { context in
            try await source.fetch(Self.profile, context: context, as: Profile.self) { $0.value.bio }
        }
        let states = SequenceRecorder(try #require(client.live).states)
        await states.wait { $0.last == .live(.eventStream) }
        let seen = SequenceRecorder(client.cache.snapshots(biography))
        await seen.wait { $0.last?.freshness == .fresh }
        for text in ["one", "two", "three"] {
            #expect(scene.edit(as: try scene.handle("user_2"), "{\"bio\":\"\(text)\"}") == 200)
            await seen.wait { $0.last?.value == text }
        }
        // An edit of somebody else fetches nothing.
        #expect(scene.edit(as: try scene.handle("user_3"), #"{"bio":"other"}"#) == 200)
        #expect(await scene.count("GET", "/v1/live/events") <= 1)
        #expect(await scene.count("GET", Self.profile) - 1 <= 4)
        client.close()
    }

    @Test func `with the disk tier off a restart shows nothing old and sends what was pending`() async throws {
        let scene = try ClientScene()
        let isOnline = Mutex(true)
        let flags = FeatureFlags()
        var services = APIClient.Services.none
        services.flags = .given(flags)
        func start() async throws -> LarderClient {
            try await scene.client(isOnline: { isOnline.withLock { $0 } }, services: services)
        }
        var client = try await start()
        let post = try #require(try await client.cache.value(client.feed.newest).items.first { !$0.likedByMe })
        isOnline.withLock { $0 = false }
        try client.likes.set(true, post.id)
        client.close()
        try flags.setOverride(false, for: .diskTier)
        client = try await start()
        #expect(!client.cache.isDiskTierOn && client.cache.outbox.status.pending == 1)
        let error = await #expect(throws: LarderError.self) { try await client.cache.value(client.feed.newest) }
        #expect(error?.code == .offline)
        isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        try await client.cache.outbox.drained()
        #expect(try await client.cache.refresh(client.feed.post(post.id)).value?.likedByMe == true)
        client.close()
        // Turned on again: the old feed, without the like, is not shown.
        try flags.setOverride(true, for: .diskTier)
        isOnline.withLock { $0 = false }
        client = try await start()
        #expect(client.cache.isDiskTierOn)
        await #expect(throws: LarderError.self) { try await client.cache.value(client.feed.newest, .cacheOnly) }
        client.close()
    }

    @Test func `a feature whose cache is off is fetched at each read, and the others are not`() async throws {
        let scene = try ClientScene()
        let flags = FeatureFlags()
        try flags.setOverride(false, for: .cache(of: "profiles"))
        var services = APIClient.Services.none
        services.flags = .given(flags)
        let client = try await scene.client(services: services)
        for _ in 0..<2 {
            _ = try await client.profiles.profile("user_2")
            _ = try await client.cache.value(client.feed.newest, .cacheFirst)
        }
        #expect(await scene.count("GET", Self.profile) == 2)
        #expect(await scene.count("GET", "/v1/feed") == 1)
        try flags.setOverride(true, for: .cache(of: "profiles"))
        _ = try await client.profiles.profile("user_2", .cacheFirst)
        #expect(await scene.count("GET", Self.profile) == 2)
        client.close()
    }
}

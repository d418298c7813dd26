import Foundation
import Larder
import LarderDemo
import LarderDevice
import LarderEvents
import LarderHTTP
import LarderImages
import LarderModels
import LarderResources
import LarderServer
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// Manual network and memory sources that record whether they are open.
final class ManualSources: NetworkMonitor.Source, MemoryGuard.Source {
    let network = NetworkMonitor.ManualSource()
    let memory = MemoryGuard.ManualSource()
    let explanation = "Told by a test."
    var status: NetworkStatus { network.status }

    func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration { network.observe(body) }

    func observe(_ body: @escaping @Sendable (MemoryGuard.Signal) -> Void) -> EventRegistration { memory.observe(body) }

    /// Services of a client with these sources. The network counts although the server is on this machine.
    func services(_ change: (inout APIClient.Services) -> Void = { _ in }) -> APIClient.Services {
        var services = APIClient.Services()
        services.networkSource = self
        services.memorySource = self
        // Its sleeps would be among those that tests wait for.
        services.maintenance = nil
        change(&services)
        return services
    }
}

/// A transport with a network that can be disconnected. Records all requests.
final class DisconnectableTransport: Transport {
    private struct State {
        var isCut = false
        var sent: [String] = []
        var wasted: [String] = []
        var inFlight = 0
    }

    private let base = SocketTransport(clock: ManualClock())
    private let state = Mutex(State())
    private let network: NetworkMonitor.ManualSource?

    /// - Parameter network: whether requests can succeed.
    init(watching network: NetworkMonitor.ManualSource? = nil) { self.network = network }

    /// The requests that were sent without a network.
    var wasted: [String] { state.withLock { $0.wasted } }

    var isCut: Bool {
        get { state.withLock { $0.isCut } }
        set { state.withLock { $0.isCut = newValue } }
    }

    /// All requests, including those without a network.
    var sent: [String] { state.withLock { $0.sent } }

    var inFlight: Int { state.withLock { $0.inFlight } }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try begin(request)
        let end = ContentEnd { [weak self] in self?.state.withLock { $0.inFlight -= 1 } }
        return end.of(try await base.open(request))
    }

    private func begin(_ request: TransportRequest) throws(TransportError) {
        let isWasted = network?.status.isConnected == false
        let isCut = state.withLock { state in
            state.sent.append("\(request.method) \(request.url)")
            if isWasted { state.wasted.append("\(request.method) \(request.url)") }
            if !state.isCut { state.inFlight += 1 }
            return state.isCut
        }
        if isCut { throw TransportError(.unreachable, "The test has cut the network.") }
    }
}

@Suite("Services of a client", .oneMinute)
struct ClientServicesTests {
    // MARK: Start and end

    @Test(arguments: [true, false])
    func `services start with the client and end with it`(_ isClosed: Bool) async throws {
        let scene = try ClientScene()
        weak var sources: ManualSources?
        weak var gone: LarderClient?
        weak var cache: LarderCache?
        weak var images: ImagePipeline?
        do {
            let made = ManualSources()
            sources = made
            let client = try await scene.client(services: made.services { $0.maintenance = .init() })
            (gone, cache, images) = (client, client.cache, client.images)
            let network = try #require(client.network)
            _ = try await client.cache.value(client.feed.newest)
            #expect(client.telemetry.totals.features["feed"]?.reads[.network]?.hits == 1)
            #expect(client.flags?[.memoryGuard] == true)
            made.memory.signal(.warning)
            #expect(client.memory?.limits.level == .warning)
            for _ in 0..<3 { network.note(NetworkSample(.unreachable)) }
            try await scene.clock.waitForSleepers()
            if isClosed {
                client.close()
                await reached { scene.clock.sleeperCount == 0 }
                #expect(client.telemetry.totals.features["feed"] != nil, "What was counted can be read.")
            }
        }
        #expect(gone == nil && sources == nil)
        // Ended tasks release what they retain.
        await reached { cache == nil && images == nil }
        #expect(cache == nil && images == nil && scene.clock.sleeperCount == 0)
    }

    @Test func `system sources are opened and closed with the client`() async throws {
        let scene = try ClientScene()
        weak var cache: LarderCache?
        do {
            let client = try await scene.client(services: .standard)
            cache = client.cache
            // A server on this machine is reachable without an interface.
            #expect(client.network?.level == .good && client.memory?.explanation.isEmpty == false)
            try await client.signOut()
        }
        await reached { cache == nil }
        #expect(cache == nil)
    }

    @Test func `each service can be left out, and a shared one is not ended`() async throws {
        let scene = try ClientScene()
        let bare = try await scene.client(services: .none)
        #expect(bare.network == nil && bare.memory == nil && bare.flags == nil && !bare.telemetry.isActive)
        let source = NetworkMonitor.ManualSource()
        let monitor = NetworkMonitor(source: source, clock: scene.clock)
        let telemetry = Telemetry(wall: scene.clock, monotonic: scene.clock)
        var services = APIClient.Services.none
        services.network = .given(monitor)
        services.telemetry = .given(telemetry)
        services.degradation.offline.allowsUserRefresh = true
        let client = try await scene.client(device: "tablet", services: services)
        #expect(client.network === monitor && client.telemetry === telemetry && telemetry.totals.events > 0)
        #expect(monitor.policy.offline.allowsUserRefresh)
        client.close()
        source.set(isConnected: false)
        #expect(monitor.isOffline, "It is somebody else's too.")
    }

    @Test func `the delay of a client after an outage is the same after a restart`() async throws {
        let scene = try ClientScene()
        func waited(_ client: LarderClient, _ source: NetworkMonitor.ManualSource) async throws -> Duration {
            source.set(isConnected: false)
            let start = scene.clock.uptime
            source.set(isConnected: true)
            let network = try #require(client.network)
            var waited = Duration.zero
            while network.behavior.isReturning {
                scene.clock.advance(by: .milliseconds(100))
                waited = scene.clock.uptime - start
            }
            return waited
        }
        var waits: [Duration] = []
        for _ in 0..<2 {
            let sources = ManualSources()
            let client = try await scene.client(services: sources.services())
            waits.append(try await waited(client, sources.network))
            client.close()
        }
        #expect(waits[0] == waits[1] && waits[0] <= .seconds(30))
    }

    // MARK: Offline

    @Test func `offline, stored content has no error, missing content has one, and nothing is sent until the return`()
        async throws
    {
        let scene = try ClientScene()
        let sources = ManualSources()
        let transport = DisconnectableTransport()
        let client = try await scene.client(services: sources.services(), transport: transport)
        let posts = try await client.cache.value(client.feed.newest).items
        let seen = SequenceRecorder(client.feed.snapshots())
        let pages = client.feed.timeline
        _ = try await pages.snapshot()
        await seen.wait(for: 1)
        scene.clock.advance(by: .seconds(600))
        await seen.wait { $0.last?.freshness == .stale(.expired) }

        sources.network.set(isConnected: false)
        transport.isCut = true
        let count = transport.sent.count
        let shown = try await client.cache.snapshot(client.feed.newest)
        #expect(shown.value?.items == posts && shown.refreshError == nil)
        #expect(try await pages.snapshot().refreshError == nil)
        for act: @Sendable () async throws -> Void in [
            { _ = try await client.cache.refresh(client.feed.newest) }, { _ = try await pages.loadOlder() },
            { _ = try await client.profiles.profile("user_9") },
        ] {
            let error = await #expect(throws: LarderError.self) { try await act() }
            #expect(error?.code == .offline)
        }
        let liked = try #require(posts.first { !$0.likedByMe })
        try client.likes.set(true, liked.id)
        for _ in 0..<20 {
            scene.clock.advance(by: .seconds(30))
            await rest()
        }
        #expect(transport.sent.count == count, "\(transport.sent.dropFirst(count))")
        #expect(seen.elements.allSatisfy { $0.value != nil && $0.refreshError == nil })

        transport.isCut = false
        sources.network.set(isConnected: true)
        #expect(client.network?.behavior.isReturning == true)
        await rest()
        #expect(transport.sent.count == count, "Its turn has not come.")
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(30))
        try await client.cache.outbox.drained()
        await seen.wait { $0.last?.freshness == .fresh }
        #expect(await scene.count("POST", "/v1/likes") == 1)
        // The like may have changed the page before the request.
        #expect(await scene.count("GET", "/v1/feed") >= 2)
        client.close()
    }

    @Test func `an unreachable server is probed and found without a read`()
        async throws
    {
        let scene = try ClientScene()
        let sources = ManualSources()
        let transport = DisconnectableTransport()
        let client = try await scene.client(services: sources.services(), transport: transport)
        _ = try await client.cache.value(client.feed.newest)
        scene.clock.advance(by: .seconds(120))
        transport.isCut = true
        for _ in 0..<3 { _ = try? await client.cache.refresh(client.feed.newest) }
        #expect(client.network?.current.cause == .experience && client.network?.isOffline == true)
        let seen = SequenceRecorder(client.feed.snapshots())
        await seen.wait { $0.last?.value != nil }
        let before = transport.sent.count
        // Up to a quarter of each interval is left out.
        @Sendable func isProbe(within longest: Duration) -> Bool {
            guard let wait = scene.clock.nextWakeUp.map({ $0 - scene.clock.uptime }) else { return false }
            return wait <= longest && wait >= longest * 0.75
        }
        // Two failed probes, after two and four seconds.
        for number in 1...2 {
            await reached { isProbe(within: .seconds(2 * number)) }
            scene.clock.advance(by: .seconds(2 * number))
            await reached { transport.sent.count == before + number }
        }
        transport.isCut = false
        await reached { isProbe(within: .seconds(8)) }
        scene.clock.advance(by: .seconds(8))
        await reached { client.network?.isOffline == false }
        #expect(transport.sent.last?.contains("/healthz") == true)
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(30))
        await seen.wait { $0.last?.freshness == .fresh }
        client.close()
    }

    // MARK: Flags

    @Test func `flags can be set locally or by the server, and are known at the next start without a network`()
        async throws
    {
        let scene = try ClientScene()
        // With a stored session no sign-in follows, which would make what was fetched before it stale.
        try await scene.client().close()
        let sources = ManualSources()
        let asked = Mutex(0)
        func services() -> APIClient.Services {
            sources.services { services in
                services.fetchFlags = {
                    asked.withLock { $0 += 1 }
                    return ["larder.memory.guard": false]
                }
            }
        }
        var client = try await scene.client(services: services())
        var flags = try #require(client.flags)
        let first = client
        await reached { first.flags?[.memoryGuard] == false }
        sources.memory.signal(.critical)
        await reached { first.memory?.limits == .normal }
        try flags.setOverride(false, for: .networkDegradation)
        await reached { first.network?.policy == DegradationPolicy.none }
        sources.network.set(isConnected: false)
        #expect(client.network?.behavior == .unrestricted, "Degradation is off.")
        client.close()

        client = try await scene.client(services: services())
        flags = try #require(client.flags)
        #expect(!flags[.networkDegradation] && !flags[.memoryGuard])
        #expect(client.network?.behavior == .unrestricted)
        sources.memory.signal(.critical)
        #expect(client.memory?.limits == .normal)
        try flags.setOverride(nil, for: .networkDegradation)
        let second = client
        await reached { second.network?.behavior.allowsRefresh == false }
        #expect(asked.withLock { $0 } == 1, "What was fetched is good for an hour.")
        client.close()
    }
}

import Foundation
import Larder
import LarderHTTP
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

/// Sources that a test tells by hand, and of whose life it can know.
final class HandSources: NetworkStatusSource, MemoryPressureSource {
    let network = ManualNetworkSource()
    let memory = ManualMemorySource()
    let explanation = "Told by a test."
    var status: NetworkStatus { network.status }

    func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration { network.observe(body) }

    func observe(_ body: @escaping @Sendable (MemorySignal) -> Void) -> EventRegistration { memory.observe(body) }

    /// An upkeep that is the client's own, and told by these. The server is on this machine and the network counts all the same.
    func upkeep(_ change: (inout LarderClient.Upkeep) -> Void = { _ in }) -> LarderClient.Upkeep {
        var upkeep = LarderClient.Upkeep()
        upkeep.networkSource = self
        upkeep.memorySource = self
        change(&upkeep)
        return upkeep
    }
}

/// A transport under which the network can be cut, and that knows what was sent over it.
final class CutTransport: Transport {
    private struct State {
        var isCut = false
        var sent: [String] = []
        var wasted: [String] = []
        var inFlight = 0
    }

    private let base = SocketTransport(clock: ManualClock())
    private let state = Mutex(State())
    private let network: ManualNetworkSource?

    /// - Parameter network: what says whether anything can succeed.
    init(watching network: ManualNetworkSource? = nil) { self.network = network }

    /// What was sent although there was no network.
    var wasted: [String] { state.withLock { $0.wasted } }

    var isCut: Bool {
        get { state.withLock { $0.isCut } }
        set { state.withLock { $0.isCut = newValue } }
    }

    /// What was sent while there was a network, and what was tried while there was none.
    var sent: [String] { state.withLock { $0.sent } }

    var inFlight: Int { state.withLock { $0.inFlight } }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try begin(request)
        defer { state.withLock { $0.inFlight -= 1 } }
        return try await base.send(request)
    }

    func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try begin(request)
        defer { state.withLock { $0.inFlight -= 1 } }
        return try await base.open(request)
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

/// Waits until a condition holds that no sequence reports; false when the test's time is over first.
func eventually(_ holds: @escaping @Sendable () async -> Bool) async -> Bool {
    while !Task.isCancelled {
        if await holds() { return true }
        await Task.yield()
    }
    return false
}

@Suite("What looks after a client", .oneMinute)
struct UpkeepTests {
    // MARK: Beginning and end

    @Test(arguments: [true, false])
    func `all of it begins with the client, and nothing of it is left after its end`(_ isClosed: Bool) async throws {
        let scene = try ClientScene()
        weak var sources: HandSources?
        weak var gone: LarderClient?
        weak var cache: LarderCache?
        weak var images: ImagePipeline?
        do {
            let made = HandSources()
            sources = made
            let client = try await scene.client(upkeep: made.upkeep())
            (gone, cache, images) = (client, client.cache, client.images)
            let network = try #require(client.network)
            _ = try await client.cache.value(client.feed.newest)
            #expect(client.telemetry.totals.features["feed"]?.reads[.network]?.hits == 1)
            #expect(client.flags?[LarderFlags.memoryGuard] == true)
            made.memory.signal(.warning)
            #expect(client.memory?.posture.level == .warning)
            for _ in 0..<3 { network.note(NetworkSample(.unreachable)) }
            try await scene.clock.waitForSleepers()
            if isClosed {
                client.close()
                #expect(await eventually { scene.clock.sleeperCount == 0 })
                #expect(client.telemetry.totals.features["feed"] != nil, "What was counted can be read.")
            }
        }
        #expect(gone == nil && sources == nil)
        // What tasks held goes with them.
        while cache != nil || images != nil, !Task.isCancelled { await Task.yield() }
        #expect(cache == nil && images == nil && scene.clock.sleeperCount == 0)
    }

    @Test func `the system's own sources come with a client and go with it`() async throws {
        let scene = try ClientScene()
        weak var cache: LarderCache?
        do {
            let client = try await scene.client(upkeep: .standard)
            cache = client.cache
            // A server on this machine needs no interface.
            #expect(client.network?.level == .good && client.memory?.explanation.isEmpty == false)
            try await client.signOut()
        }
        while cache != nil, !Task.isCancelled { await Task.yield() }
        #expect(cache == nil)
    }

    @Test func `each part can be left out, and what is given is used and not ended`() async throws {
        let scene = try ClientScene()
        let bare = try await scene.client(upkeep: .none)
        #expect(bare.network == nil && bare.memory == nil && bare.flags == nil && !bare.telemetry.isActive)
        let source = ManualNetworkSource()
        let monitor = NetworkMonitor(source: source, clock: scene.clock)
        let telemetry = Telemetry(wall: scene.clock, monotonic: scene.clock)
        var upkeep = LarderClient.Upkeep.none
        upkeep.network = .given(monitor)
        upkeep.telemetry = .given(telemetry)
        upkeep.degradation.offline.allowsUserRefresh = true
        let client = try await scene.client(device: "tablet", upkeep: upkeep)
        #expect(client.network === monitor && client.telemetry === telemetry && telemetry.totals.events > 0)
        #expect(monitor.policy.offline.allowsUserRefresh)
        client.close()
        source.set(isConnected: false)
        #expect(monitor.isOffline, "It is somebody else's too.")
    }

    @Test func `a client's place among those that return is the same after a restart`() async throws {
        let scene = try ClientScene()
        func waited(_ client: LarderClient, _ source: ManualNetworkSource) async throws -> Duration {
            source.set(isConnected: false)
            let start = scene.clock.uptime
            source.set(isConnected: true)
            let network = try #require(client.network)
            var waited = Duration.zero
            while network.conduct.isReturning {
                scene.clock.advance(by: .milliseconds(100))
                waited = scene.clock.uptime - start
            }
            return waited
        }
        var waits: [Duration] = []
        for _ in 0..<2 {
            let sources = HandSources()
            let client = try await scene.client(upkeep: sources.upkeep())
            waits.append(try await waited(client, sources.network))
            client.close()
        }
        #expect(waits[0] == waits[1] && waits[0] <= .seconds(30))
    }

    // MARK: Offline

    @Test func `offline: content without errors, one error where there is none, nothing sent, and all of it on return`()
        async throws
    {
        let scene = try ClientScene()
        let sources = HandSources()
        let transport = CutTransport()
        let client = try await scene.client(upkeep: sources.upkeep(), transport: transport)
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
            for _ in 0..<20 { await Task.yield() }
        }
        #expect(transport.sent.count == count, "\(transport.sent.dropFirst(count))")
        #expect(seen.elements.allSatisfy { $0.value != nil && $0.refreshError == nil })

        transport.isCut = false
        sources.network.set(isConnected: true)
        #expect(client.network?.conduct.isReturning == true)
        for _ in 0..<200 { await Task.yield() }
        #expect(transport.sent.count == count, "Its turn has not come.")
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(30))
        try await client.cache.outbox.drained()
        await seen.wait { $0.last?.freshness == .fresh }
        #expect(await scene.count("POST", "/v1/likes") == 1)
        // The like may have changed the page before it was asked for.
        #expect(await scene.count("GET", "/v1/feed") >= 2)
        client.close()
    }

    @Test func `a server that cannot be reached is looked for from time to time, and found without anybody asking`()
        async throws
    {
        let scene = try ClientScene()
        let sources = HandSources()
        let transport = CutTransport()
        let client = try await scene.client(upkeep: sources.upkeep(), transport: transport)
        _ = try await client.cache.value(client.feed.newest)
        scene.clock.advance(by: .seconds(120))
        transport.isCut = true
        for _ in 0..<3 { _ = try? await client.cache.refresh(client.feed.newest) }
        #expect(client.network?.current.cause == .experience && client.network?.isOffline == true)
        let seen = SequenceRecorder(client.feed.snapshots())
        await seen.wait { $0.last?.value != nil }
        let before = transport.sent.count
        // Two tries in vain, two and four seconds apart.
        for number in 1...2 {
            #expect(await eventually { scene.clock.nextWakeUp == scene.clock.uptime + .seconds(2 * number) })
            scene.clock.advance(by: .seconds(2 * number))
            #expect(await eventually { transport.sent.count == before + number })
        }
        transport.isCut = false
        #expect(await eventually { scene.clock.nextWakeUp == scene.clock.uptime + .seconds(8) })
        scene.clock.advance(by: .seconds(8))
        #expect(await eventually { client.network?.isOffline == false })
        #expect(transport.sent.last?.contains("/healthz") == true)
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(30))
        await seen.wait { $0.last?.freshness == .fresh }
        client.close()
    }

    // MARK: Switches

    @Test func `the switches are flags: set here or by the server, and known at the next start before any network`()
        async throws
    {
        let scene = try ClientScene()
        let sources = HandSources()
        let asked = Mutex(0)
        func upkeep() -> LarderClient.Upkeep {
            sources.upkeep { upkeep in
                upkeep.fetchFlags = {
                    asked.withLock { $0 += 1 }
                    return ["larder.memory.guard": .bool(false), "larder.network.resumeWindowSeconds": .integer(0)]
                }
            }
        }
        var client = try await scene.client(upkeep: upkeep())
        var flags = try #require(client.flags)
        for await isOn in flags.updates(of: LarderFlags.memoryGuard) where !isOn { break }
        let first = client
        #expect(await eventually { first.network?.policy.resume.window == .zero })
        sources.memory.signal(.critical)
        #expect(client.memory?.posture == .normal, "The guard is off.")
        try flags.setOverride(false, for: LarderFlags.networkDegradation)
        #expect(await eventually { first.network?.policy == DegradationPolicy.none })
        sources.network.set(isConnected: false)
        #expect(client.network?.conduct == .unrestricted, "Degradation is off.")
        client.close()

        client = try await scene.client(upkeep: upkeep())
        flags = try #require(client.flags)
        #expect(!flags[LarderFlags.networkDegradation] && !flags[LarderFlags.memoryGuard])
        #expect(client.network?.conduct == .unrestricted)
        sources.memory.signal(.critical)
        #expect(client.memory?.posture == .normal)
        try flags.setOverride(nil, for: LarderFlags.networkDegradation)
        let second = client
        #expect(await eventually { second.network?.conduct.allowsRefresh == false })
        #expect(asked.withLock { $0 } == 1, "What was fetched is good for an hour.")
        client.close()
    }
}

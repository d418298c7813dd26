import LarderDevice
import LarderEvents
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderImages

@Suite("Image pipeline, failures of visible pictures", .oneMinute)
struct ListPrefetchFailureTests {
    private static let picture = PNGBuilder.picture(width: 4, height: 4) { _, _ in (9, 8, 7) }

    @Sendable private static func url(_ row: Int) -> String { "http://pictures/\(row)" }

    @Sendable private static func request(_ row: Int) -> ImageRequest? {
        ImageRequest(url: url(row), target: ImageTarget(width: 10, height: 10))
    }

    /// Ten pictures; each download is tried once, and the clock moves by hand.
    private func setting(_ change: (inout ImagePipeline.Configuration) -> Void = { _ in }) throws -> ImageSetting {
        let setting = try ImageSetting { configuration in
            configuration.triesMaximum = 1
            configuration.retry.attemptsMaximum = 3
            configuration.random = { 0.5 }
            change(&configuration)
        }
        for row in 0..<10 { setting.server[Self.url(row)] = .init(bytes: Self.picture) }
        return setting
    }

    private func prefetch(
        _ setting: ImageSetting,
        ahead: Int = 0,
        onRecovery: (@Sendable (Int) -> Void)? = nil
    ) -> ImagePipeline.ListPrefetch {
        ImagePipeline.ListPrefetch(
            setting.pipeline,
            aheadMaximum: ahead,
            behindMaximum: 0,
            onRecovery: onRecovery,
            request: Self.request
        )
    }

    private func waitForFailures(_ count: Int, _ setting: ImageSetting) async {
        await setting.log.wait { $0.count { if case .failed = $0 { true } else { false } } >= count }
    }

    private func waitForDelivery(_ count: Int, _ setting: ImageSetting) async {
        await setting.log.wait { $0.count { if case .delivered = $0 { true } else { false } } >= count }
    }

    @Test func `a visible picture that failed is tried again when its failure is forgotten`() async throws {
        let setting = try setting { $0.negativeLifetime = .milliseconds(1) }
        let clock = setting.clock
        defer { setting.remove() }
        let waits = Mutex<[Duration]>([])
        let pipeline = setting.restarted {
            $0.triesMaximum = 1
            $0.random = { 0.5 }
            $0.uptime = NoWaitClock(clock) { wait in
                waits.withLock { $0.append(wait) }
                clock.advance(by: wait)
            }
        }
        setting.server[Self.url(0)]?.statuses = [503, 500]
        let recovered = Pending<Int>()
        let prefetch = ImagePipeline.ListPrefetch(
            pipeline,
            aheadMaximum: 0,
            onRecovery: { recovered.finish($0) },
            request: Self.request
        )
        prefetch.show(0..<2, of: 2)
        #expect(await recovered.value(ifCancelled: -1) == 0)
        // The failure is remembered so long.
        #expect(waits.withLock { $0 } == [.seconds(5), .seconds(5)])
        #expect(setting.server.requests.count == 4)
        #expect(Self.request(0).flatMap { pipeline.cachedImage(for: $0) } != nil)
        withExtendedLifetime(prefetch) {}
    }

    @Test func `a visible picture that fails is requested as often as the retry policy says`() async throws {
        let setting = try setting()
        let clock = setting.clock
        defer { setting.remove() }
        let pipeline = setting.restarted {
            $0.triesMaximum = 1
            $0.retry.attemptsMaximum = 4
            $0.uptime = NoWaitClock(clock) { clock.advance(by: $0) }
        }
        setting.server[Self.url(0)]?.statuses = [503, 503, 503, 503]
        let prefetch = ImagePipeline.ListPrefetch(pipeline, request: Self.request)
        prefetch.show(0..<1, of: 1)
        await waitForFailures(4, setting)
        #expect(setting.server.requests.count == 4)
        // What the policy has given up is requested again when the network is back.
        pipeline.forgetFailures()
        await waitForDelivery(1, setting)
        #expect(setting.server.requests.count == 5)
        withExtendedLifetime(prefetch) {}
    }

    @Test func `neither a picture that is only prefetched nor one that does not exist is tried again`() async throws {
        let setting = try setting { $0.negativeLifetime = .zero }
        defer { setting.remove() }
        setting.server[Self.url(0)] = nil
        setting.server[Self.url(1)]?.statuses = [503, 503]
        let prefetch = prefetch(setting, ahead: 1)
        prefetch.show(0..<1, of: 2)
        await waitForFailures(2, setting)
        setting.pipeline.forgetFailures()
        #expect(setting.pipeline.workload == (loads: 0, decodes: 0))
        // Now it is visible.
        prefetch.show(1..<2, of: 2)
        await waitForDelivery(1, setting)
        #expect(setting.server.requests.map(\.url).sorted() == [0, 1, 1, 1].map(Self.url))
        #expect(setting.log.count { if case .delivered(_, _, _, isPrefetch: true) = $0 { true } else { false } } == 0)
        withExtendedLifetime(prefetch) {}
    }

    @Test(arguments: ["left", "cancelled", "released"])
    func `a picture that waits to be tried again is not, once it has`(_ end: String) async throws {
        let clock = ManualClock()
        let setting = try setting { $0.uptime = clock }
        defer { setting.remove() }
        setting.server[Self.url(0)]?.statuses = [503]
        var prefetch: ImagePipeline.ListPrefetch? = prefetch(setting)
        prefetch?.show(0..<1, of: 10)
        try await clock.waitForSleepers()
        #expect(clock.nextWakeUp == clock.uptime + .seconds(5))
        switch end {
        case "left": prefetch?.show(5..<6, of: 10)
        case "cancelled": prefetch?.cancel()
        default: prefetch = nil
        }
        if end == "left" { await waitForDelivery(1, setting) }
        clock.advance(by: .seconds(5))
        setting.pipeline.forgetFailures()
        #expect(setting.server.requests.count == (end == "left" ? 2 : 1))
        #expect(setting.pipeline.workload == (loads: 0, decodes: 0))
        prefetch = nil
    }

    @Test func `the window follows the share that the pipeline allows`() async throws {
        let setting = try setting { $0.loadsMaximum = 1 }
        defer { setting.remove() }
        let gate = Gate()
        setting.server[Self.url(0)]?.gate = gate
        let prefetch = prefetch(setting, ahead: 4)
        prefetch.show(0..<1, of: 10)
        await setting.log.waitForDownloads(1)
        #expect(setting.pipeline.workload.loads == 5)
        setting.pipeline.setPrefetchShare(0.5)
        #expect(setting.pipeline.workload.loads == 3)
        setting.pipeline.setPrefetchShare(0)
        #expect(setting.pipeline.workload.loads == 1)
        // One that is created later follows it too.
        let other = ImagePipeline.ListPrefetch(setting.pipeline) { Self.request($0 + 5) }
        other.show(0..<1, of: 5)
        #expect(setting.pipeline.workload.loads == 2)
        setting.pipeline.setPrefetchShare(.nan)
        #expect(setting.pipeline.workload.loads == 5 + 5)
        gate.open()
        await waitForDelivery(10, setting)
        withExtendedLifetime((prefetch, other)) {}
    }

    @Test func `a client's lists follow the level of its network without code of the app`() throws {
        let setting = try setting { $0.loadsMaximum = 1 }
        defer { setting.remove() }
        let gate = Gate()
        setting.server[Self.url(0)]?.gate = gate
        let limits = LimitController(setting.pipeline, try CacheScene().cache(inMemory: true))
        let prefetch = prefetch(setting, ahead: 4)
        prefetch.show(0..<1, of: 10)
        #expect(setting.pipeline.workload.loads == 5)
        limits.follow(DegradationPolicy.standard.constrained)
        #expect(setting.pipeline.workload.loads == 1)
        limits.follow(NetworkBehavior(prefetchFactor: 0.5))
        #expect(setting.pipeline.workload.loads == 3)
        limits.follow(DegradationPolicy.standard.offline)
        #expect(setting.pipeline.workload.loads == 1)
        limits.follow(.unrestricted)
        #expect(setting.pipeline.workload.loads == 5)
        limits.setPrefetch(false)
        #expect(setting.pipeline.workload.loads == 1)
        prefetch.cancel()
        gate.open()
    }

    @Test func `the outbox sends when its network behavior allows it again, and not before the return is due`()
        async throws
    {
        let setting = try setting { $0.loadsMaximum = 1 }
        defer { setting.remove() }
        let behavior = Mutex(NetworkBehavior(sendsOutbox: false))
        let scene = CacheScene()
        var configuration = scene.configuration(inMemory: true)
        configuration.networkBehavior = { behavior.withLock { $0 } }
        let cache = try LarderCache(configuration)
        let limits = LimitController(setting.pipeline, cache)
        func follow(_ new: NetworkBehavior) {
            behavior.withLock { $0 = new }
            limits.follow(new)
        }
        let sent = Mutex(0)
        let operation = WriteBehind<Int, Int>("count", scope: { "\($0)" }) { _, _ in
        } send: { attempts in
            sent.withLock { $0 += attempts.count }
            return attempts.map { _ in .accepted(1) }
        }
        let returns = Mutex(0)
        let registration = cache.core.returns.add { returns.withLock { $0 += 1 } }
        follow(NetworkBehavior(sendsOutbox: false))
        try cache.enqueue(1, operation)
        cache.outbox.resume()
        await rest()
        follow(.unrestricted)
        await reached { sent.withLock { $0 } == 1 }
        follow(NetworkBehavior(allowsRefresh: false, sendsOutbox: false))
        try cache.enqueue(2, operation)
        await rest()
        var returning = NetworkBehavior(allowsRefresh: false)
        returning.isReturning = true
        let before = returns.withLock { $0 }
        follow(returning)
        #expect(returns.withLock { $0 } == before)
        follow(NetworkBehavior(allowsRefresh: false))
        #expect(returns.withLock { $0 } == before + 1)
        await reached { sent.withLock { $0 } == 2 }
        withExtendedLifetime(registration) {}
    }
}

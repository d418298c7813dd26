import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderEvents

@Suite("Cache: network behavior", .oneMinute)
struct NetworkBehaviorTests {
    /// A cache that follows a monitor with a manual source.
    private final class Scene: Sendable {
        let base = CacheScene()
        let network = NetworkMonitor.ManualSource()
        let monitor: NetworkMonitor
        let cache: LarderCache
        let script = ScriptedSource<Note>()

        init(_ policy: DegradationPolicy = .standard) throws {
            var configuration = NetworkMonitor.Configuration(seed: 3)
            configuration.policy = policy
            monitor = NetworkMonitor(source: network, configuration: configuration, clock: base.clock)
            var settings = base.configuration(inMemory: true)
            let monitor = monitor
            settings.mayUseNetwork = { monitor.mayTry }
            settings.networkBehavior = { monitor.behavior }
            cache = try LarderCache(settings)
        }

        var clock: ManualClock { base.clock }

        func note(_ freshness: Freshness.Demand = .interactive, _ policy: ReadPolicy = .cacheFirst) -> Resource<Note> {
            let script = script
            return .entity("1", freshness: freshness, policy: policy) { try await script.fetch($0) }
        }

        func prepare(_ text: String) {
            script.prepare(.value(Note(id: "1", text: text, revision: Int64(script.requests.count + 1))))
        }

        /// Applies the monitor's current behavior, as a client does after a change.
        func tell() {
            cache.networkBehaviorChanged()
            if monitor.behavior.refreshesByItself { cache.networkReturned() }
        }

        func goOffline() {
            network.set(isConnected: false)
            tell()
        }

        /// Reports failed requests, while the system reports a network.
        func fail(_ count: Int) {
            for _ in 0..<count { monitor.note(NetworkSample(.unreachable)) }
            tell()
        }

        func comeBack() {
            network.set(isConnected: true)
            tell()
        }

        func constrain() {
            monitor.setOverride(.constrained)
            tell()
        }
    }

    @Test(arguments: [ReadPolicy.cacheFirst, .staleWhileRevalidate, .cacheAndLoad, .networkFirst(timeout: nil)])
    func `offline a stale value is returned at once without a request or an error`(_ policy: ReadPolicy)
        async throws
    {
        let scene = try Scene()
        scene.prepare("old")
        _ = try await scene.cache.value(scene.note())
        scene.clock.advance(by: .seconds(3_600))
        scene.goOffline()
        let read = try await scene.cache.snapshot(scene.note(), policy)
        #expect(read.line(\.text).hasPrefix("old stale(expired)") && read.refreshError == nil)
        let seen = SequenceRecorder(scene.cache.snapshots(scene.note(), policy))
        let first = try #require(await seen.wait(for: 1).first)
        #expect(first.value?.text == "old" && first.refreshError == nil && first.isFetching == false)
        #expect(scene.script.requests.count == 1)
    }

    @Test func `offline without stored values a read fails once, and content arrives when the network returns`()
        async throws
    {
        let scene = try Scene()
        scene.goOffline()
        let error = await #expect(throws: LarderError.self) { try await scene.cache.value(scene.note()) }
        #expect(error?.code == .offline)
        let seen = SequenceRecorder(scene.cache.snapshots(scene.note()))
        await seen.wait { $0.last?.refreshError?.code == .offline }
        #expect(scene.script.requests.isEmpty)
        scene.prepare("new")
        scene.comeBack()
        #expect(scene.script.requests.isEmpty, "Its turn to return has not come.")
        scene.clock.advance(by: .seconds(30))
        scene.tell()
        let last = try #require(await seen.wait { $0.last?.value != nil }.last)
        #expect(last.value?.text == "new" && last.refreshError == nil && scene.script.requests.count == 1)
    }

    @Test func `an offline refresh throws and observers see no error`() async throws {
        let scene = try Scene()
        scene.prepare("old")
        let seen = SequenceRecorder(scene.cache.snapshots(scene.note()))
        await seen.wait { $0.last?.value != nil }
        scene.goOffline()
        let error = await #expect(throws: LarderError.self) { try await scene.cache.refresh(scene.note()) }
        #expect(error?.code == .offline && error?.description.contains("Try again") == true)
        scene.clock.advance(by: .seconds(1))
        let gate = await #expect(throws: LarderError.self) {
            try await scene.cache.requireValidated(scene.note(), within: .zero)
        }
        #expect(gate?.code == .notValidated)
        #expect(seen.elements.allSatisfy { $0.refreshError == nil } && scene.script.requests.count == 1)
        // A refresh by the user does not wait for the client's turn.
        scene.comeBack()
        #expect(scene.monitor.behavior.isReturning)
        scene.prepare("new")
        #expect(try await scene.cache.refresh(scene.note()).value?.text == "new")
    }

    /// Whether the system reports a network while requests fail.
    @Test
    func `a refresh is sent while only failed requests say that there is no network, and its reply ends that state`()
        async throws
    {
        let scene = try Scene()
        scene.prepare("old")
        _ = try await scene.cache.value(scene.note())
        scene.fail(3)
        let probe = try #require(scene.monitor.nextProbe)
        #expect(scene.monitor.isOffline && !scene.monitor.mayTry)
        // What a policy asks for, without a person, waits for the probe.
        let spared = try await scene.cache.snapshot(scene.note(.interactive, .networkFirst(timeout: nil)))
        #expect(spared.value?.text == "old" && scene.script.requests.count == 1)
        scene.script.prepare(failure: LarderError(.timedOut, "slow"))
        let failed = await #expect(throws: LarderError.self) { try await scene.cache.refresh(scene.note()) }
        scene.fail(1)
        #expect(failed?.code == .timedOut && scene.script.requests.count == 2)
        #expect(scene.monitor.nextProbe == probe, "A person's failure does not delay the probe.")
        scene.prepare("new")
        #expect(try await scene.cache.refresh(scene.note()).value?.text == "new")
        scene.monitor.note(NetworkSample(.reply, latency: .milliseconds(5)))
        #expect(scene.monitor.level == .constrained && scene.monitor.mayTry)
        // The word of the system, and that of the app, still hold.
        scene.monitor.setOverride(.offline)
        await #expect(throws: LarderError.self) { try await scene.cache.refresh(scene.note()) }
        scene.monitor.setOverride(nil)
        scene.goOffline()
        await #expect(throws: LarderError.self) { try await scene.cache.refresh(scene.note()) }
        #expect(scene.script.requests.count == 3)
    }

    @Test func `a person's refresh of a timeline is sent while only failed requests say that there is no network`()
        async throws
    {
        let scene = try Scene()
        let pages = PageSource()
        pages.prepare([9, 8, 7], next: "c")
        let timeline = scene.cache.timeline(pages.resource())
        _ = try await timeline.snapshot()
        scene.fail(3)
        await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect(pages.requests.count == 1)
        pages.prepare([10, 9, 8], next: "d")
        try await timeline.refresh()
        pages.prepare([6, 5], next: nil)
        try await timeline.loadOlder(isUserInitiated: true)
        #expect(pages.requests.count == 3)
    }

    @Test func `bounded staleness is not refreshed offline and once after the network returns`() async throws {
        let scene = try Scene()
        let rule = Freshness.Rule(.timeToLive(.seconds(60)), level: .boundedStaleness(.seconds(60)))
        scene.prepare("old")
        let seen = SequenceRecorder(scene.cache.snapshots(scene.note(.rule(rule))))
        await seen.wait { $0.last?.value != nil && $0.last?.isFetching == false }
        scene.goOffline()
        for _ in 0..<100 { scene.clock.advance(by: .seconds(10)) }
        await seen.wait { $0.last?.freshness == .stale(.expired) }
        #expect(scene.script.requests.count == 1 && scene.clock.sleeperCount == 0, "Nothing waits for anything.")
        scene.prepare("new")
        scene.comeBack()
        await rest()
        #expect(scene.script.requests.count == 1)
        scene.clock.advance(by: .seconds(30))
        scene.tell()
        await seen.wait { $0.last?.value?.text == "new" }
        #expect(scene.script.requests.count == 2 && seen.elements.allSatisfy { $0.refreshError == nil })
    }

    @Test func `a constrained network extends lifetimes that may be extended`() async throws {
        let scene = try Scene()
        scene.prepare("old")
        let seen = SequenceRecorder(scene.cache.snapshots(scene.note(), .cacheOnly))
        _ = try await scene.cache.value(scene.note())
        await seen.wait { $0.last?.freshness == .fresh }
        scene.constrain()
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(90))
        let read = try await scene.cache.snapshot(scene.note())
        #expect(read.freshness == .fresh && scene.script.requests.count == 1)
        #expect(read.times?.expiresAt == scene.clock.now + .seconds(30))
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(30))
        await seen.wait { $0.last?.freshness == .stale(.expired) }
        #expect(try await scene.cache.snapshot(scene.note(), .cacheOnly).freshness == .stale(.expired))
    }

    @Test func `extended values are stale at once when the network is good again`() async throws {
        let scene = try Scene()
        scene.prepare("old")
        _ = try await scene.cache.value(scene.note())
        scene.constrain()
        scene.clock.advance(by: .seconds(90))
        let seen = SequenceRecorder(scene.cache.snapshots(scene.note(), .cacheOnly))
        await seen.wait { $0.last?.freshness == .fresh }
        scene.monitor.setOverride(nil)
        scene.tell()
        let last = await seen.wait { $0.last?.freshness == .stale(.expired) }.last
        #expect(last?.freshness == .stale(.expired) && last?.value?.text == "old")
        #expect(scene.script.requests.count == 1)
    }

    @Test func `a constrained network does not extend critical values and exact lifetimes`() async throws {
        for demand in [Freshness.Demand.critical, .timeToLive(.seconds(15))] {
            let scene = try Scene()
            scene.prepare("old")
            _ = try await scene.cache.value(scene.note(demand))
            scene.constrain()
            scene.clock.advance(by: .seconds(16))
            #expect(try await scene.cache.snapshot(scene.note(demand), .cacheOnly).freshness == .stale(.expired))
        }
    }

    @Test func `a custom network policy replaces each decision`() async throws {
        var policy = DegradationPolicy.standard
        policy.constrained.lifetimeFactors["interactive"] = 10
        policy.constrained.allowsRefresh = false
        policy.constrained.allowsUserRefresh = false
        let scene = try Scene(policy)
        scene.prepare("old")
        _ = try await scene.cache.value(scene.note())
        scene.constrain()
        scene.clock.advance(by: .seconds(599))
        #expect(try await scene.cache.snapshot(scene.note()).freshness == .fresh)
        scene.clock.advance(by: .seconds(1))
        #expect(try await scene.cache.snapshot(scene.note()).freshness == .stale(.expired))
        #expect(scene.script.requests.count == 1)
        await #expect(throws: LarderError.self) { try await scene.cache.refresh(scene.note()) }
        // Without a policy, everything is tried as on a good network.
        scene.monitor.policy = .none
        scene.tell()
        scene.prepare("new")
        #expect(try await scene.cache.value(scene.note()).text == "new")
    }

    // MARK: Pages

    @Test func `offline no page is requested and only the caller gets the error`() async throws {
        let scene = try Scene()
        let pages = PageSource()
        pages.prepare([9, 8, 7], next: "c")
        let timeline = scene.cache.timeline(pages.resource())
        _ = try await timeline.snapshot()
        scene.goOffline()
        let error = await #expect(throws: LarderError.self) { try await timeline.loadOlder() }
        #expect(error?.code == .offline)
        let pull = await #expect(throws: LarderError.self) { try await timeline.refresh() }
        #expect(pull?.code == .offline)
        let shown = try await timeline.snapshot()
        #expect(shown.line == "9 8 7" && shown.loadOlderError == nil && shown.refreshError == nil)
        #expect(pages.requests.count == 1)
    }

    @Test func `a constrained network enlarges pages up to the source's maximum`() async throws {
        for (maximum, expected) in [(nil, 3), (4, 4), (100, 6)] as [(Int?, Int)] {
            let scene = try Scene()
            let pages = PageSource()
            pages.prepare([9, 8, 7], next: "c")
            var resource = pages.resource()
            resource.pageSizeMaximum = maximum
            let timeline = scene.cache.timeline(resource)
            _ = try await timeline.snapshot()
            scene.constrain()
            pages.prepare([6, 5], next: nil)
            try await timeline.loadOlder()
            #expect(pages.requests.last?.limit == expected)
        }
    }

    // MARK: The outbox

    @Test func `offline the outbox waits, and it sends when the network returns`() async throws {
        let scene = try Scene()
        let server = LikeServer(posts: 60)
        scene.cache.outbox.resume()
        scene.goOffline()
        for post in ["1", "2", "3"] { try scene.cache.enqueue(Tap(post: post, isLike: true), server.operation) }
        await rest()
        #expect(server.requests.isEmpty && scene.cache.outbox.status.pending == 3)
        scene.comeBack()
        scene.clock.advance(by: .seconds(30))
        scene.tell()
        try await scene.cache.outbox.drained()
        #expect(server.requests.map { $0.count } == [3])
    }

    @Test func `a constrained network collects operations for two seconds into larger batches`() async throws {
        let scene = try Scene()
        let server = LikeServer(posts: 60)
        scene.cache.outbox.resume()
        var operation = server.operation
        operation.batchUsual = 2
        operation.batchMaximum = 3
        scene.constrain()
        for post in ["1", "2", "3"] {
            try scene.cache.enqueue(Tap(post: post, isLike: true), operation)
            try await scene.clock.waitForSleepers()
            scene.clock.advance(by: .milliseconds(600))
        }
        #expect(server.requests.isEmpty)
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .milliseconds(200))
        try await scene.cache.outbox.drained()
        #expect(server.requests.map { $0.count } == [3])
        scene.monitor.setOverride(nil)
        scene.tell()
        scene.cache.outbox.pause()
        for post in ["4", "5", "6"] { try scene.cache.enqueue(Tap(post: post, isLike: true), operation) }
        scene.cache.outbox.resume()
        try await scene.cache.outbox.drained()
        #expect(server.requests.map { $0.count }.sorted() == [1, 2, 3])
    }

    @Test func `a request that began before the network returned is repeated once if it fails`() async throws {
        let scene = CacheScene()
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = Resource<String>("page") { try await source.fetch($0) }
        let seen = SequenceRecorder(cache.snapshots(resource))
        await source.waitForRequests(1)
        cache.networkReturned()
        source.fail(0, LarderError(.offline, "there was no network when this began"))
        await source.waitForRequests(2)
        source.answer(1, .value("there"))
        await seen.wait { $0.last?.value == "there" }
        #expect(source.requests.count == 2)
    }

    @Test func `a value that could not be asked for just before the network returned is asked for`() async throws {
        let scene = CacheScene()
        let shared = Mutex<LarderCache?>(nil)
        var configuration = scene.configuration()
        configuration.mayUseNetwork = {
            // The first time the network returns just after the answer was found.
            guard let cache = shared.withLock({ $0.take() }) else { return true }
            cache.networkReturned()
            return false
        }
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        let resource = Resource<String>("page") { try await source.fetch($0) }
        shared.withLock { $0 = cache }
        let seen = SequenceRecorder(cache.snapshots(resource))
        await source.waitForRequests(1)
        source.answer(0, .value("there"))
        await seen.wait { $0.last?.value == "there" }
        #expect(source.requests.count == 1)
    }

    @Test func `such a request is repeated although its observer was added after its end`() async throws {
        let scene = CacheScene()
        let (hasJoined, hasEnded) = (Pending<Bool>(), Hold())
        let isFirst = Atomic<Bool>(true)
        var configuration = scene.configuration()
        configuration.onEvent = { event in
            guard case .merged = event, isFirst.exchange(false, ordering: .acquiringAndReleasing) else { return }
            hasJoined.finish(true)
            hasEnded.wait()
        }
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        let resource = Resource<String>("page") { try await source.fetch($0) }
        let reading = Task { try await cache.value(resource) }
        await source.waitForRequests(1)
        let observing = Task {
            for await snapshot in cache.snapshots(resource) where snapshot.value == "there" { return }
        }
        #expect(await hasJoined.value(ifCancelled: false))
        cache.networkReturned()
        source.fail(0, LarderError(.offline, "there was no network when this began"))
        await #expect(throws: LarderError.self) { try await reading.value }
        hasEnded.open()
        await source.waitForRequests(2)
        source.answer(1, .value("there"))
        await observing.value
        #expect(source.requests.count == 2)
    }

    @Test func `an observer that must wait asks at once if the network returns before it was added`() async throws {
        let scene = CacheScene()
        let (isAsking, hasReturned) = (Pending<Bool>(), Hold())
        let blocks = Atomic<Bool>(false)
        var configuration = scene.configuration()
        configuration.random = { 1 }
        configuration.onEvent = { event in
            guard case .miss = event, blocks.load(ordering: .acquiring) else { return }
            isAsking.finish(true)
            hasReturned.wait()
        }
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        let resource = Resource<String>("page") { try await source.fetch($0) }
        source.prepare(failure: LarderError(.offline, "there is no network"))
        await #expect(throws: LarderError.self) { try await cache.value(resource) }
        blocks.store(true, ordering: .releasing)
        let observing = Task {
            for await snapshot in cache.snapshots(resource) where snapshot.value == "there" { return }
        }
        #expect(await isAsking.value(ifCancelled: false))
        cache.networkReturned()
        hasReturned.open()
        await source.waitForRequests(2)
        source.answer(1, .value("there"))
        await observing.value
    }
}

import Larder
import LarderTime
import Synchronization
import TestSupport
import Testing

private enum Layout: String, FlagValue {
    case list
    case grid
}

extension FlagKey<Bool> { fileprivate static let newFeed = FlagKey("feed.new", default: false) }
extension FlagKey<Int> { fileprivate static let pageSize = FlagKey("feed.pageSize", default: 20) }
extension FlagKey<Double> { fileprivate static let ratio = FlagKey("ratio", default: 0.5) }
extension FlagKey<String> { fileprivate static let greeting = FlagKey("greeting", default: "hello") }
extension FlagKey<Layout> { fileprivate static let layout = FlagKey("layout", default: .list) }

@Suite("Feature flags", .oneMinute)
struct FeatureFlagsTests {
    private struct Offline: Error {}
    private struct Full: FlagStorage {
        func load() throws -> [UInt8]? { throw Offline() }
        func save(_ bytes: [UInt8]) throws { throw Offline() }
    }

    private let clock = ManualClock()
    private let storage = MemoryFlagStorage()

    private func flags(_ settings: [String: FlagSetting]) -> FeatureFlags {
        FeatureFlags(storage: storage, fetch: { settings }, wall: clock)
    }

    @Test func `what was set here comes first, then the server, then the default`() async throws {
        let flags = flags(["feed.new": .bool(true), "feed.pageSize": .integer(50)])
        #expect(!flags[.newFeed] && flags[.pageSize] == 20 && flags.source(of: .newFeed) == .standard)
        #expect(try await flags.refresh() == ["feed.new", "feed.pageSize"])
        #expect(flags[.newFeed] && flags[.pageSize] == 50 && flags.source(of: .newFeed) == .remote)
        #expect(flags.fetchedAt == clock.now)
        try flags.setOverride(false, for: .newFeed)
        #expect(!flags[.newFeed] && flags.source(of: .newFeed) == .override)
        try flags.setOverride(nil, for: .newFeed)
        #expect(flags[.newFeed])
        #expect(try await flags.refresh() == [], "What is as it was is no change.")
    }

    @Test func `a cold start without network has what the last life knew`() async throws {
        let directory = StoreDirectory()
        do {
            let store = try DiskStore(DiskStore.Configuration(directory: directory.path, clock: clock))
            let settings: [String: FlagSetting] = ["layout": .string("grid"), "ratio": .number(0.25)]
            let flags = FeatureFlags(storage: DiskFlagStorage(store), fetch: { settings }, wall: clock)
            try await flags.refresh()
            try flags.setOverride(99, for: .pageSize)
            // Clearing the cache does not change what the application is.
            try store.removeAllItems()
        }
        let store = try DiskStore(DiskStore.Configuration(directory: directory.path, clock: clock))
        let flags = FeatureFlags(storage: DiskFlagStorage(store), fetch: { throw Offline() }, wall: clock)
        #expect(flags[.layout] == .grid && flags[.ratio] == 0.25 && flags[.pageSize] == 99)
        #expect(flags.fetchedAt == clock.now && flags.loadProblem == nil)
        do {
            try await flags.refresh()
            Issue.record("There is no network.")
        } catch {
            #expect(error.code == .fetchFailed && error.cause is Offline)
        }
        #expect(flags[.layout] == .grid, "What was known holds.")
    }

    @Test func `damaged or foreign storage means defaults and a report, never a crash`() throws {
        let good = MemoryFlagStorage()
        try FeatureFlags(storage: good).setOverride("hi \u{1F600}\"", for: .greeting)
        let bytes = good.load() ?? []
        #expect(FeatureFlags(storage: good)[.greeting] == "hi \u{1F600}\"")
        for seed in UInt64(1)...300 {
            var generator = SeededGenerator(seed: seed)
            var damaged = bytes
            for _ in 0..<generator.uniform(in: 1..<5) {
                damaged[generator.uniform(in: 0..<damaged.count)] = UInt8(truncatingIfNeeded: generator.next())
            }
            let flags = FeatureFlags(storage: MemoryFlagStorage(damaged))
            // It may still be JSON, with another text or name.
            if flags.loadProblem != nil { #expect(flags[.greeting] == "hello", "seed \(seed)") }
        }
        for text in ["", "[]", "{}", #"{"format":2,"remote":{},"overrides":{}}"#, "\u{0}"] {
            let flags = FeatureFlags(storage: MemoryFlagStorage(Array(text.utf8)))
            #expect(flags.loadProblem?.code == .unusable && flags[.greeting] == "hello", "\(text)")
        }
        let flags = FeatureFlags(storage: Full())
        #expect(flags.loadProblem != nil)
        do {
            try flags.setOverride("x", for: .greeting)
            Issue.record("It cannot be stored.")
        } catch {
            #expect(error.code == .notStored && flags[.greeting] == "x", "It holds until the process ends.")
        }
    }

    @Test func `settings of another type or with unknown cases keep the default, and are told of once`() async throws {
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        let settings: [String: FlagSetting] = [
            "feed.new": .integer(1), "feed.pageSize": .number(30), "layout": .string("carousel"), "ratio": .integer(2),
            "greeting": .bool(true),
        ]
        let flags = FeatureFlags(fetch: { settings }, wall: clock, telemetry: telemetry)
        try await flags.refresh()
        let events = telemetry.events()
        for _ in 0..<3 {
            #expect(!flags[.newFeed] && flags[.layout] == .list && flags[.greeting] == "hello")
            #expect(flags[.pageSize] == 30 && flags[.ratio] == 2, "Numbers are numbers.")
        }
        telemetry.record(.note(name: "end"))
        var notes: [TelemetryEvent.Kind] = []
        for await event in events {
            if event.kind == .note(name: "end") { break }
            notes.append(event.kind)
        }
        #expect(notes.count == 3 && notes.contains(.note(name: "flagOfOtherType", detail: "layout")))
    }

    @Test func `who listens to a flag gets the present value and then each other one`() async throws {
        let flags = flags(["feed.pageSize": .integer(50)])
        let updates = flags.updates(of: .pageSize)
        var iterator = updates.makeAsyncIterator()
        #expect(await iterator.next() == 20)
        try flags.setOverride(true, for: .newFeed)
        try flags.setOverride(20, for: .pageSize)
        try flags.setOverride(nil, for: .pageSize)
        try await flags.refresh()
        #expect(await iterator.next() == 50)
        try flags.setOverride(7, for: .pageSize)
        try flags.setOverride(8, for: .pageSize)
        #expect(await iterator.next() == 8)
        let waiting = Task {
            var iterator = flags.updates(of: .pageSize).makeAsyncIterator()
            _ = await iterator.next()
            return await iterator.next()
        }
        waiting.cancel()
        #expect(await waiting.value == nil)
    }

    @Test func `a slow old answer never overwrites a newer one`() async throws {
        let gates = Mutex<[CheckedContinuation<[String: FlagSetting], Never>]>([])
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        let flags = FeatureFlags(fetch: {
            await withCheckedContinuation { continuation in
                gates.withLock { $0.append(continuation) }
                arrived.yield()
            }
        })
        var arrival = arrivals.makeAsyncIterator()
        let first = Task { try await flags.refresh() }
        await arrival.next()
        let second = Task { try await flags.refresh() }
        await arrival.next()
        gates.withLock { $0 }[1].resume(returning: ["feed.pageSize": .integer(2)])
        #expect(try await second.value == ["feed.pageSize"])
        gates.withLock { $0 }[0].resume(returning: ["feed.pageSize": .integer(1)])
        #expect(try await first.value == [])
        #expect(flags[.pageSize] == 2)
    }

    @Test func `what cannot be used is refused whole, and what was known holds`() async throws {
        let settings = Mutex<[String: FlagSetting]>(["feed.pageSize": .integer(5)])
        let flags = FeatureFlags(fetch: { settings.withLock { $0 } })
        try await flags.refresh()
        settings.withLock { $0 = [String(repeating: "n", count: 5_000): .bool(true)] }
        await #expect(throws: FlagError.self) { try await flags.refresh() }
        settings.withLock { settings in
            settings = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("flag\($0)", .bool(true)) })
        }
        await #expect(throws: FlagError.self) { try await flags.refresh() }
        #expect(flags[.pageSize] == 5)
        #expect(throws: FlagError.self) { try flags.setOverride(.nan, for: .ratio) }
        #expect(flags[.ratio] == 0.5)
        await #expect(throws: FlagError.self) { try await FeatureFlags().refresh() }
    }

    @Test func `JSON of a server becomes settings, and what is newer than this program is passed over`() throws {
        let text = #"{"a": true, "b": 3, "c": 2.5, "d": "x", "e": null, "f": [1], "g": {"h": 1}}"#
        let settings = try FlagSetting.settings(json: Array(text.utf8))
        #expect(settings == ["a": .bool(true), "b": .integer(3), "c": .number(2.5), "d": .string("x")])
        for bad in ["", "<html>captive portal</html>", "[1]", "{"] {
            #expect(throws: FlagError.self) { try FlagSetting.settings(json: Array(bad.utf8)) }
        }
    }

    @Test func `the SDK's own behaviour is switched by flags`() async throws {
        let flags = flags([
            "larder.network.degradation": .bool(false), "larder.memory.guard": .bool(false),
            "larder.network.resumeWindowSeconds": .integer(90), "larder.telemetry.totals": .bool(false),
        ])
        let network = ManualNetworkSource(NetworkStatus(isConnected: false))
        let monitor = NetworkMonitor(source: network, configuration: .init(seed: 1), clock: clock)
        let pressure = ManualMemorySource()
        let memory = MemoryGuard(source: pressure, clock: clock)
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        pressure.signal(.critical)
        func apply() { LarderFlags.apply(flags, monitor: monitor, guard: memory, telemetry: telemetry) }
        apply()
        #expect(!monitor.conduct.allowsRefresh && memory.posture.level == .critical && telemetry.isActive)
        try await flags.refresh()
        apply()
        #expect(monitor.conduct.allowsRefresh && memory.posture == .normal && !telemetry.isActive)
        #expect(monitor.policy.resume.window == .seconds(90))
        try flags.setOverride(true, for: LarderFlags.memoryGuard)
        apply()
        #expect(memory.posture.level == .critical)
    }

    @Test func `switches are followed until the task ends`() async throws {
        let flags = flags([:])
        let pressure = ManualMemorySource()
        let memory = MemoryGuard(source: pressure, clock: clock)
        pressure.signal(.warning)
        let states = memory.states
        var iterator = states.makeAsyncIterator()
        _ = await iterator.next()
        let following = Task { await LarderFlags.follow(flags, guard: memory) }
        // Whether it follows already or not: the flag is looked at when it begins, too.
        try flags.setOverride(false, for: LarderFlags.memoryGuard)
        #expect(await iterator.next()?.posture == .normal)
        following.cancel()
        await following.value
    }
}

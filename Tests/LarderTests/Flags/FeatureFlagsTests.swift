import Larder
import LarderDevice
import LarderStorage
import LarderTelemetry
import LarderTime
import SDKTestSupport
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
    private final class MemoryFlagStorage: FeatureFlags.Storage {
        private let bytes: Mutex<[UInt8]?>

        init(_ bytes: [UInt8]? = nil) { self.bytes = Mutex(bytes) }

        func load() -> [UInt8]? { bytes.withLock { $0 } }
        func save(_ bytes: [UInt8]) { self.bytes.withLock { $0 = bytes } }
    }

    private struct Full: FeatureFlags.Storage {
        func load() throws -> [UInt8]? { throw Offline() }
        func save(_ bytes: [UInt8]) throws { throw Offline() }
    }

    private let clock = ManualClock()
    private let storage = MemoryFlagStorage()

    private func flags(_ settings: [String: FeatureFlags.Setting]) -> FeatureFlags {
        FeatureFlags(storage: storage, fetch: { settings }, wall: clock)
    }

    @Test func `an override comes first, then the server, then the default`() async throws {
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

    @Test func `a start without a network has the last known settings`() async throws {
        let directory = StoreDirectory()
        do {
            let store = try DiskStore(DiskStore.Configuration(directory: directory.path, clock: clock))
            let settings: [String: FeatureFlags.Setting] = ["layout": .string("grid"), "ratio": .number(0.25)]
            let flags = FeatureFlags(storage: FeatureFlags.DiskStorage(store), fetch: { settings }, wall: clock)
            try await flags.refresh()
            try flags.setOverride(99, for: .pageSize)
            // Clearing the cache keeps the flags.
            try store.removeAllItems()
        }
        let store = try DiskStore(DiskStore.Configuration(directory: directory.path, clock: clock))
        let flags = FeatureFlags(storage: FeatureFlags.DiskStorage(store), fetch: { throw Offline() }, wall: clock)
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

    @Test func `damaged or foreign storage gives defaults and a report`() throws {
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
            // The damaged bytes may still be valid JSON.
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

    @Test func `settings of another type or with unknown cases keep the default and are reported once`() async throws {
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        let settings: [String: FeatureFlags.Setting] = [
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

    @Test func `an observer of a flag gets the current value and then each change`() async throws {
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

    @Test func `an older response never replaces a newer one`() async throws {
        let gates = Mutex<[CheckedContinuation<[String: FeatureFlags.Setting], Never>]>([])
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

    @Test func `invalid settings are rejected as a whole, and known ones stay`() async throws {
        let settings = Mutex<[String: FeatureFlags.Setting]>(["feed.pageSize": .integer(5)])
        let flags = FeatureFlags(fetch: { settings.withLock { $0 } })
        try await flags.refresh()
        settings.withLock { $0 = [String(repeating: "n", count: 5_000): .bool(true)] }
        await #expect(throws: FeatureFlags.Failure.self) { try await flags.refresh() }
        settings.withLock { settings in
            settings = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("flag\($0)", .bool(true)) })
        }
        await #expect(throws: FeatureFlags.Failure.self) { try await flags.refresh() }
        #expect(flags[.pageSize] == 5)
        #expect(throws: FeatureFlags.Failure.self) { try flags.setOverride(.nan, for: .ratio) }
        #expect(flags[.ratio] == 0.5)
        await #expect(throws: FeatureFlags.Failure.self) { try await FeatureFlags().refresh() }
    }

    @Test func `settings are parsed from JSON, and unknown kinds of values are skipped`() throws {
        let text = #"{"a": true, "b": 3, "c": 2.5, "d": "x", "e": null, "f": [1], "g": {"h": 1}}"#
        let settings = try FeatureFlags.Setting.settings(json: Array(text.utf8))
        #expect(settings == ["a": .bool(true), "b": .integer(3), "c": .number(2.5), "d": .string("x")])
        for bad in ["", "<html>captive portal</html>", "[1]", "{"] {
            #expect(throws: FeatureFlags.Failure.self) { try FeatureFlags.Setting.settings(json: Array(bad.utf8)) }
        }
    }

    @Test func `flags control the behaviour of the SDK`() async throws {
        let flags = flags([
            "larder.network.degradation": .bool(false), "larder.memory.guard": .bool(false),
            "larder.network.resumeWindowSeconds": .integer(90), "larder.telemetry.totals": .bool(false),
        ])
        let network = NetworkMonitor.ManualSource(NetworkStatus(isConnected: false))
        let monitor = NetworkMonitor(source: network, configuration: .init(seed: 1), clock: clock)
        let pressure = MemoryGuard.ManualSource()
        let memory = MemoryGuard(source: pressure, clock: clock)
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        pressure.signal(.critical)
        func apply() { FeatureFlags.BuiltIn.apply(flags, monitor: monitor, guard: memory, telemetry: telemetry) }
        apply()
        #expect(!monitor.behavior.allowsRefresh && memory.limits.level == .critical && telemetry.isActive)
        try await flags.refresh()
        apply()
        #expect(monitor.behavior.allowsRefresh && memory.limits == .normal && !telemetry.isActive)
        #expect(monitor.policy.resume.window == .seconds(90))
        try flags.setOverride(true, for: FeatureFlags.BuiltIn.memoryGuard)
        apply()
        #expect(memory.limits.level == .critical)
    }
}

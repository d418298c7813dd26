import Foundation
import LarderResources
import LarderStorage
import LarderTelemetry
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

extension FeatureFlags.Key {
    fileprivate static let newFeed = FeatureFlags.Key("feed.new", default: false)
    fileprivate static let oldFeed = FeatureFlags.Key("feed.old", default: true)
}

@Suite("Feature flags", .oneMinute)
struct FeatureFlagsTests {
    private struct Offline: Error {}

    private let clock = ManualClock()
    private let directory = StoreDirectory()

    private func store() throws -> DiskStore {
        try DiskStore(DiskStore.Configuration(directory: directory.path, clock: clock))
    }

    @Test func `an override comes first, then the server, then the default`() async throws {
        let flags = FeatureFlags(fetch: { ["feed.new": true] })
        var changes = flags.changes.makeAsyncIterator()
        #expect(!flags[.newFeed] && flags[.oldFeed])
        try await flags.refresh()
        #expect(flags[.newFeed] && flags[.oldFeed])
        try flags.setOverride(false, for: .newFeed)
        #expect(!flags[.newFeed])
        // What is as it was is no change.
        try await flags.refresh()
        try flags.setOverride(nil, for: .newFeed)
        #expect(flags[.newFeed])
        try flags.setOverride(false, for: .oldFeed)
        for expected: Set<String> in [["feed.new"], ["feed.new"], ["feed.new"], ["feed.old"]] {
            #expect(await changes.next(isolation: nil) == expected)
        }
    }

    @Test func `settings that could not be stored are stored by a later refresh with the same`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: directory.path, clock: clock))
        let flags = FeatureFlags(store: try killable.store(), fetch: { ["feed.new": true] })
        killable.fail(.full, untilHealed: true)
        await #expect { try await flags.refresh() } throws: { ($0 as? LarderError)?.code == .storage }
        killable.heal()
        try await flags.refresh()
        killable.abandon()
        #expect(FeatureFlags(store: try store())[.newFeed])
    }

    @Test func `a start without a network has the last known settings`() async throws {
        do {
            let store = try store()
            let flags = FeatureFlags(store: store, fetch: { ["feed.new": true] })
            try await flags.refresh()
            try flags.setOverride(false, for: .oldFeed)
            // Clearing the cache keeps the flags.
            try store.removeAllItems()
        }
        let flags = FeatureFlags(store: try store(), fetch: { throw Offline() })
        #expect(flags[.newFeed] && !flags[.oldFeed])
        do {
            try await flags.refresh()
            Issue.record("There is no network.")
        } catch {
            #expect(error.cause is Offline)
        }
        #expect(flags[.newFeed] && !flags[.oldFeed], "What was known holds.")
    }

    @Test(arguments: ["", "[]", "\u{0}", #"{"remote":{"feed.new":1},"overrides":{}}"#])
    func `damaged or foreign settings give defaults and an event`(_ text: String) throws {
        let store = try store()
        try store.write { transaction in
            try transaction.setMetadata(Array(text.utf8), for: FeatureFlags.storageKey)
        }
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        let flags = FeatureFlags(store: store, telemetry: telemetry)
        #expect(!flags[.newFeed] && flags[.oldFeed])
        #expect(telemetry.totals.events == 1)
        try flags.setOverride(true, for: .newFeed)
        #expect(FeatureFlags(store: store)[.newFeed], "The damaged settings were replaced.")
    }

    @Test func `what one of two processes has set stays when the other one stores its settings`() async throws {
        let one = FeatureFlags(store: try store())
        let two = FeatureFlags(store: try store(), fetch: { ["feed.old": false] })
        try one.setOverride(true, for: .newFeed)
        try await two.refresh()
        #expect(two[.newFeed])
        let three = FeatureFlags(store: try store())
        #expect(three[.newFeed] && !three[.oldFeed])
        // The first one has not seen the removal.
        try two.setOverride(nil, for: .newFeed)
        try one.setOverride(true, for: .oldFeed)
        #expect(!one[.newFeed] && one[.oldFeed])
    }

    @Test func `an override that cannot be stored lasts until the process ends`() throws {
        let killable = KillableStore(DiskStore.Configuration(directory: directory.path, clock: clock))
        let flags = FeatureFlags(store: try killable.store())
        killable.kill()
        do {
            try flags.setOverride(true, for: .newFeed)
            Issue.record("It cannot be stored.")
        } catch {
            #expect(error.code == .storage)
        }
        #expect(flags[.newFeed])
    }

    @Test func `a switch may be set by the app's code that hears of a damaged store`() throws {
        let waiting = Mutex<FeatureFlags?>(nil)
        var configuration = DiskStore.Configuration(directory: directory.path, clock: clock)
        configuration.onEvent = { event in
            guard case .recovered = event, let flags = waiting.withLock({ $0.take() }) else { return }
            do { try flags.setOverride(false, for: .oldFeed) } catch { Issue.record(error) }
        }
        let flags = FeatureFlags(store: try DiskStore(configuration))
        waiting.withLock { $0 = flags }
        for suffix in ["", "-wal", "-shm"] {
            try FileManager.default.removeItem(atPath: directory.path + "/store.sqlite" + suffix)
        }
        try flags.setOverride(true, for: .newFeed)
        #expect(waiting.withLock { $0 == nil }, "The store has found its files missing.")
        #expect(flags[.newFeed] && !flags[.oldFeed])
        let later = FeatureFlags(store: try store())
        #expect(later[.newFeed] && !later[.oldFeed])
    }

    @Test func `an older response never replaces a newer one`() async throws {
        let gates = Mutex<[CheckedContinuation<[String: Bool], Never>]>([])
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        let flags = FeatureFlags(fetch: {
            await withCheckedContinuation { continuation in
                gates.withLock { $0.append(continuation) }
                arrived.yield()
            }
        })
        var arrival = arrivals.makeAsyncIterator()
        let first = Task { try await flags.refresh() }
        await arrival.next(isolation: nil)
        let second = Task { try await flags.refresh() }
        await arrival.next(isolation: nil)
        gates.withLock { $0 }[1].resume(returning: ["feed.new": true])
        try await second.value
        gates.withLock { $0 }[0].resume(returning: [:])
        try await first.value
        #expect(flags[.newFeed])
    }

    @Test func `too many settings or too long names are rejected as a whole, and known ones stay`() async throws {
        let settings = Mutex(["feed.new": true])
        let flags = FeatureFlags(fetch: { settings.withLock { $0 } })
        try await flags.refresh()
        settings.withLock { $0 = [String(repeating: "n", count: 5_000): true] }
        await #expect(throws: LarderError.self) { try await flags.refresh() }
        settings.withLock { $0 = Dictionary(uniqueKeysWithValues: (0..<5_000).map { ("flag\($0)", true) }) }
        await #expect(throws: LarderError.self) { try await flags.refresh() }
        #expect(flags[.newFeed])
    }
}

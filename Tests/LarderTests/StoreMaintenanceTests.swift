import Foundation
import LarderDevice
import LarderResources
import LarderStorage
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Maintenance by itself", .oneMinute)
final class StoreMaintenanceTests: Sendable {
    private let clock = ManualClock()
    private let directory = StoreDirectory()
    private let isAllowed = Mutex(true)

    private func store(_ change: (inout DiskStore.Configuration) -> Void = { _ in }) throws -> DiskStore {
        var configuration = DiskStore.Configuration(directory: directory.path, clock: clock)
        configuration.staleRetention = .seconds(60)
        change(&configuration)
        return try DiskStore(configuration)
    }

    private func fill(_ disk: DiskStore, _ count: Int, bytes: Int = 2_000) throws {
        try disk.write { transaction in
            for number in 0..<count {
                let key = EntityKey(type: "note", id: "\(number)")
                let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes + number)
                try transaction.put(
                    DiskEntity(key, payload: payload, fetchedAt: clock.now, expiresAt: clock.now + .seconds(1))
                )
            }
        }
    }

    private func maintenance(_ disk: DiskStore, _ telemetry: Telemetry = Telemetry(totals: false)) -> StoreMaintenance {
        StoreMaintenance(
            [StoreMaintenance.Item(name: "data", disk: disk)],
            APIClient.Services.Maintenance(),
            clock: clock,
            telemetry: telemetry
        ) { [self] in isAllowed.withLock { $0 } }
    }

    /// Moves the clock whenever the maintenance sleeps, until `isDone` or for a number of sleeps.
    private func drive(sleeps: Int = 2_000, until isDone: () throws -> Bool) async throws -> Bool {
        for _ in 0..<sleeps {
            try await clock.waitForSleepers()
            if try isDone() { return true }
            let next = try #require(clock.nextWakeUp)
            clock.advance(by: next - clock.uptime)
        }
        return try isDone()
    }

    @Test func `outdated rows and free pages leave, and the log is emptied`() async throws {
        let disk = try store()
        try fill(disk, 300)
        try fill(disk, 200, bytes: 700)
        let full = try disk.statistics().databaseBytes
        clock.advance(by: .seconds(120))
        let work = maintenance(disk)
        let running = Task { await work.run() }
        defer { running.cancel() }
        #expect(
            try await drive {
                try disk.statistics().items == 0
                    && directory.bytes("store.sqlite-wal").isEmpty
            }
        )
        #expect(try disk.statistics().databaseBytes < full / 2)
    }

    @Test func `nothing is done while somebody waits`() async throws {
        let disk = try store()
        try fill(disk, 10)
        clock.advance(by: .seconds(120))
        isAllowed.withLock { $0 = false }
        let work = maintenance(disk)
        let running = Task { await work.run() }
        defer { running.cancel() }
        #expect(try await !drive(sleeps: 20) { try disk.statistics().items == 0 })
        isAllowed.withLock { $0 = true }
        #expect(try await drive { try disk.statistics().items == 0 })
    }

    @Test func `a store that fails is reported, and tried again in the next round`() async throws {
        let killable = KillableStore(
            {
                var configuration = DiskStore.Configuration(directory: directory.path, clock: clock)
                configuration.staleRetention = .seconds(60)
                return configuration
            }()
        )
        let disk = try killable.store()
        try fill(disk, 10, bytes: 10)
        clock.advance(by: .seconds(120))
        let telemetry = Telemetry(wall: clock, monotonic: clock)
        let work = maintenance(disk, telemetry)
        killable.fail(.inputOutput, untilHealed: true)
        let running = Task { await work.run() }
        defer { running.cancel() }
        #expect(try await !drive(sleeps: 3) { false })
        // The round that the last step of the clock has begun is over.
        try await clock.waitForSleepers()
        killable.heal()
        #expect(try disk.statistics().items == 10)
        #expect(try await drive { try disk.statistics().items == 0 })
    }

    @Test func `a client maintains its data and its pictures by itself, not during an interaction`() async throws {
        let expired = Mutex(0)
        var configuration = APIClient.Configuration(transport: ScriptedTransport { _, _ in .text("") })
        configuration.cache.wallClock = clock
        configuration.cache.monotonicClock = clock
        configuration.cache.onEvent = { event in
            if case .disk(.expired(let count)) = event { expired.withLock { $0 += count } }
        }
        configuration.services = .none
        let idle = IdleScheduler(quiet: .seconds(50 * 86_400), clock: clock)
        configuration.services.idle = .given(idle)
        configuration.services.maintenance = APIClient.Services.Maintenance()
        configuration.services.maintenance?.interval = .seconds(60)
        let client = try await APIClient(
            server: "http://server",
            account: "ana",
            directory: directory.path,
            configuration
        )
        try fill(try #require(client.cache.disk), 3)
        try fill(try #require(client.images.configuration.disk), 4)
        idle.interacted()
        clock.advance(by: .seconds(40 * 86_400))
        #expect(try await !drive(sleeps: 30) { expired.withLock { $0 } > 0 })
        clock.advance(by: .seconds(20 * 86_400))
        #expect(try await drive { expired.withLock { $0 } == 7 })
        client.close()
    }
}

import LarderDevice
import LarderEvents
import LarderStorage
import LarderTelemetry
import LarderTime

/// Maintains stores in rounds of small steps while nobody waits. Safe from any task.
final class StoreMaintenance: Sendable {
    /// A store and its name in telemetry.
    struct Item: Sendable {
        let name: String
        let disk: DiskStore
    }

    /// The most rows of a step.
    private static let rowsMaximum = 16
    /// More steps than this in one round say that a store is never done; the next round continues.
    private static let stepsMaximum = 10_000

    private let items: [Item]
    private let settings: APIClient.Services.Maintenance
    private let clock: any MonotonicClock
    private let telemetry: Telemetry
    private let mayWork: @Sendable () -> Bool
    /// Nil if no store may block.
    private let disk: DiskExecutor?

    /// - Parameter mayWork: whether nobody waits now. Called before each step, while no lock is held.
    init(
        _ items: [Item],
        _ settings: APIClient.Services.Maintenance,
        clock: any MonotonicClock,
        telemetry: Telemetry,
        mayWork: @escaping @Sendable () -> Bool
    ) {
        self.items = items
        disk = items.contains { $0.disk.configuration.mayBlock } ? DiskExecutor(threadsMaximum: 1) : nil
        self.settings = settings
        self.clock = clock
        self.telemetry = telemetry
        self.mayWork = mayWork
    }

    /// Runs rounds until the task is cancelled, on a thread of its own.
    func run() async { await withTaskExecutorPreference(disk) { await self.runRounds() } }

    private func runRounds() async {
        do throws(CancellationError) {
            try await clock.sleep(until: clock.uptime + settings.delay)
            while true {
                for item in items { try await maintain(item) }
                try await clock.sleep(until: clock.uptime + settings.interval)
            }
        } catch {
            // The client was closed.
        }
    }

    private func maintain(_ item: Item) async throws(CancellationError) {
        for _ in 0..<Self.stepsMaximum {
            try await waitForTurn()
            let isDone = carryOut(item) { disk throws(DiskError) in try disk.maintain(limit: Self.rowsMaximum) }
            guard let isDone else { return }
            if isDone { break }
            try await clock.sleep(until: clock.uptime + settings.pause)
        }
        try await waitForTurn()
        carryOut(item) { disk throws(DiskError) in try disk.emptyLog() }
    }

    /// Waits until nobody waits for anything else.
    private func waitForTurn() async throws(CancellationError) {
        var pause = settings.pause
        while !mayWork() {
            try await clock.sleep(until: clock.uptime + pause)
            pause = min(pause * 2, settings.interval)
        }
    }

    /// Returns nil if the store failed. The next round tries again.
    @discardableResult
    private func carryOut<Result>(_ item: Item, _ work: (DiskStore) throws(DiskError) -> Result) -> Result? {
        do { return try work(item.disk) } catch {
            telemetry.record(.note(name: "maintenanceFailed", detail: "\(item.name): \(error)"))
            return nil
        }
    }
}

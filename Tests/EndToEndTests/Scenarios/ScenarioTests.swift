import Foundation
import LarderServer
import TestSupport
import Testing

/// The SDK in every scenario of `larder-server scenarios`, judged by the server alone.
@Suite("The SDK in the scenarios for any client", .oneMinute)
struct SDKScenarioTests {
    /// Eight at a time: most of a scenario is waiting, for a `Retry-After` or a late reply.
    @Test func `the SDK passes`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, scenario) in Scenario.all.enumerated() {
                if index >= 8 { try await group.next() }
                group.addTask { try await Self.pass(scenario) }
            }
            try await group.waitForAll()
        }
    }

    private static func pass(_ scenario: Scenario) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try ScenarioRun(scenario)
        var failure: (any Error)?
        do { try await ScenarioClient(run, directory: directory).perform() } catch { failure = error }
        let result = try await run.judge()
        let entries = await run.world.journal().map(\.description).joined(separator: "\n")
        #expect(await run.activity() == [], "\(scenario.name)")
        await run.stop()
        let end = failure.map { "\($0)" } ?? "the client has ended"
        #expect(result.outcome == .passed, "\(scenario.name): \(end)\n\(entries)")
    }
}

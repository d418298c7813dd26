import Foundation
import LarderServer
import TestSupport
import Testing

/// The SDK in every scenario of `larder-server scenarios`, judged by the server alone.
@Suite("The SDK in the scenarios for any client", .oneMinute)
struct SDKScenarioTests {
    @Test(arguments: Scenario.all.map(\.name))
    func `the SDK passes`(_ name: String) async throws {
        let scenario = try #require(Scenario.all.first { $0.name == name })
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
            .path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let run = try ScenarioRun(scenario)
        var failure: (any Error)?
        do { try await ScenarioClient(run, directory: directory).perform() } catch { failure = error }
        let result = try await run.judge()
        let entries = await run.world.journal().map(\.description).joined(separator: "\n")
        #expect(await run.activity() == [])
        await run.stop()
        #expect(result.outcome == .passed, "\(name): \(failure.map { "\($0)" } ?? "the client has ended")\n\(entries)")
    }
}

import Larder
import LarderDevice
import LarderImages
import LarderTesting
import TestSupport
import Testing

@Suite("Client: settings of pictures and of metered networks", .oneMinute)
struct ClientSettingsTests {
    private let fixture = ClientFixture()

    @Test func `a client whose bytes of the month are spent prefetches nothing`() async throws {
        let budget = NetworkMonitor.DataBudget(bytesPerMonth: 100)
        let transport = ScriptedTransport { _, _ in
            ClientFixture.json(#"{"text":"\#(String(repeating: "x", count: 60))"}"#)
        }
        let client = try await fixture.client(transport) {
            $0.services.network = .own
            $0.services.networkSource = NetworkMonitor.ManualSource()
            $0.services.dataBudget = budget
        }
        let network = try #require(client.network)
        try await client.source.send(.post, "/x")
        #expect(!budget.isSpent && network.behavior.allowsPrefetch)
        try await client.source.send(.post, "/x")
        #expect(budget.isSpent && network.current.cause == .metered && !network.behavior.allowsPrefetch)
        client.close()
    }

    @Test func `a client that is told that its network is metered begins so`() async throws {
        let client = try await fixture.client(ScriptedTransport { _, _ in .text("") }) {
            $0.services.network = .own
            $0.services.networkSource = NetworkMonitor.ManualSource()
            $0.services.isMetered = true
        }
        let network = try #require(client.network)
        #expect(network.level == .constrained && network.current.cause == .metered)
        network.setMetered(nil)
        #expect(network.level == .good)
        client.close()
    }

    @Test func `pictures share memory as the configuration says`() async throws {
        let client = try await fixture.client(ScriptedTransport { _, _ in .text("") }) { $0.imageMemory = .twoBudgets }
        #expect(client.images.configuration.memory.budgets == SizeBudgets())
        #expect(client.images.configuration.memory.order == .lru)
        client.close()
    }
}

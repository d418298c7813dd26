import Larder
import LarderDevice
import LarderImages
import LarderTesting
import LarderTime
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

    @Test func `what a client has received in a month counts after a restart, and not in the next month`() async throws
    {
        let clock = ManualClock()
        let transport = ScriptedTransport { _, _ in
            ClientFixture.json(#"{"text":"\#(String(repeating: "x", count: 60))"}"#)
        }
        func start() async throws -> (APIClient, NetworkMonitor.DataBudget) {
            let budget = NetworkMonitor.DataBudget(bytesPerMonth: 100, clock: clock)
            let client = try await fixture.client(transport) {
                $0.services.network = .own
                $0.services.networkSource = NetworkMonitor.ManualSource()
                $0.services.dataBudget = budget
            }
            return (client, budget)
        }
        let (client, budget) = try await start()
        for _ in 0..<2 { try await client.source.send(.post, "/x") }
        let spent = budget.use
        #expect(spent.bytes == 142 && budget.isSpent)
        try await reached {
            let stored = try client.cache.outboxDisk?.metadata("larder.network.use") ?? []
            return String(decoding: stored, as: UTF8.self).contains("142")
        }
        client.close()
        let (again, restored) = try await start()
        #expect(restored.use == spent && again.network?.current.cause == .metered)
        again.close()
        clock.advance(by: .seconds(31 * 86_400))
        let (later, fresh) = try await start()
        #expect(fresh.use.bytes == 0 && later.network?.level == .good)
        later.close()
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

    @Test func `pictures have as much memory as the configuration says`() async throws {
        let client = try await fixture.client(ScriptedTransport { _, _ in .text("") }) {
            $0.imageMemoryBytesMaximum = 5 << 20
        }
        #expect(client.images.configuration.memoryBytesMaximum == 5 << 20)
        client.close()
    }
}

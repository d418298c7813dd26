import Larder
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Client: inspector", .oneMinute)
struct InspectorTests {
    /// A server that is not there.
    private final class Absent: WebSocketConnector {
        let requests = Mutex<[WebSocketClient.Request]>([])

        func connect(
            _ request: WebSocketClient.Request,
            _ configuration: WebSocketClient.Configuration
        ) async throws(WebSocketError) -> any WebSocketConnection {
            requests.withLock { $0.append(request) }
            throw WebSocketError(.unreachable, "Nobody listens.")
        }
    }

    private let fixture = ClientFixture()

    @Test func `a server that is not there is looked for at growing intervals, and no more after the end`() async throws
    {
        let absent = Absent()
        let clock = fixture.scene.clock
        let client = try await fixture.client(ScriptedTransport(script: [])) {
            $0.cache.random = { 1 }
            $0.webSockets = WebSocketClient(connector: absent)
            $0.inspector = "https://machine:8443/w/blue/"
            $0.inspectorToken = "secret"
        }
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            try await clock.waitForSleepers()
            clock.advance(by: .seconds(seconds) - .milliseconds(1))
            #expect(clock.sleeperCount == 1)
            clock.advance(by: .milliseconds(1))
        }
        try await clock.waitForSleepers()
        let requests = absent.requests.withLock { $0 }
        #expect(requests.count == 9)
        #expect(requests.allSatisfy { $0.url == "wss://machine:8443/w/blue/_larder/clients/connect" })
        #expect(requests.first?.fields[.authorization] == "Bearer secret")
        client.close()
        await reached { clock.sleeperCount == 0 }
    }
}

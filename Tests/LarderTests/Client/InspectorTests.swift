import LarderHTTP
import LarderResources
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder
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

    /// A connection that the server has closed.
    private final class Ended: WebSocketConnection {
        let subprotocol: String? = nil
        let fields = Fields()
        let closing: WebSocketClient.Close? = nil

        func receive() async throws(WebSocketError) -> WebSocketClient.Message? { nil }
        func send(_ message: WebSocketClient.Message) async throws(WebSocketError) {}
        func ping() async throws(WebSocketError) {}
        func close(_ close: WebSocketClient.Close) async -> WebSocketClient.Close? { nil }
        func cut() {}
    }

    /// A server that accepts some connections, by their numbers from 1, and closes them at once.
    private final class Restarting: WebSocketConnector {
        let count = Mutex(0)
        let accepts: @Sendable (Int) -> Bool

        init(_ accepts: @escaping @Sendable (Int) -> Bool) { self.accepts = accepts }

        func connect(
            _ request: WebSocketClient.Request,
            _ configuration: WebSocketClient.Configuration
        ) async throws(WebSocketError) -> any WebSocketConnection {
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard accepts(number) else { throw WebSocketError(.unreachable, "Nobody listens.") }
            return Ended()
        }
    }

    /// The failures that the client has told of.
    private var failures: Int {
        fixture.scene.events.withLock { events in
            events.count { if case .failed("larder.inspector", _) = $0 { true } else { false } }
        }
    }

    @Test func `a server that closes at once is asked at growing intervals, and each outage is told once`() async throws
    {
        let server = Restarting { ![2, 3, 5].contains($0) }
        let clock = fixture.scene.clock
        let client = try await fixture.client(ScriptedTransport(script: [])) {
            $0.cache.random = { 1 }
            $0.webSockets = WebSocketClient(connector: server)
            $0.inspector = "http://machine"
        }
        for (seconds, told) in zip([1, 2, 4, 8, 16], [0, 1, 1, 1, 2]) {
            try await clock.waitForSleepers()
            #expect(failures == told)
            clock.advance(by: .seconds(seconds) - .milliseconds(1))
            #expect(clock.sleeperCount == 1)
            clock.advance(by: .milliseconds(1))
        }
        await reached { server.count.withLock { $0 } == 6 }
        client.close()
        await reached { clock.sleeperCount == 0 }
    }

    /// A server that does not answer.
    private final class Silent: WebSocketConnector {
        let gate = TransportGate()

        func connect(
            _ request: WebSocketClient.Request,
            _ configuration: WebSocketClient.Configuration
        ) async throws(WebSocketError) -> any WebSocketConnection {
            do { try await gate.pass() } catch { throw WebSocketError(.cancelled, "The caller was cancelled.") }
            return Ended()
        }
    }

    @Test func `a client that is closed while it connects tells of no failure`() async throws {
        let server = Silent()
        let client = try await fixture.client(ScriptedTransport(script: [])) {
            $0.webSockets = WebSocketClient(connector: server)
            $0.inspector = "http://machine"
        }
        await server.gate.waitForHeld()
        client.close()
        await reached { server.gate.heldCount == 0 }
        await rest()
        #expect(failures == 0)
    }

    @Test func `a report of a write has neither its query nor that of its error`() async throws {
        let client = try await fixture.client(ScriptedTransport(script: [.text("", status: .internalServerError)]))
        try client.write(.put, "/articles/7?token=secret")
        await reached { client.cache.outbox.entries.first?.error != nil }
        let entry = try #require(client.cache.outbox.entries.first)
        #expect(entry.error?.description.contains("secret") == true && entry.scope.contains("secret"))
        let report = ClientReport.Operation(entry)
        #expect(!"\(report)".contains("secret"), "\(report)")
        #expect(report.scope == "/articles/7" && report.error?.contains("http://server/articles/7") == true)
        client.close()
    }
}

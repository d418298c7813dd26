import LarderDemo
import LarderHTTP
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Demo client: live updates and the session", .oneMinute)
struct LiveSessionTests {
    private let scene = CacheScene()

    /// A client whose server accepts one access token, rejects all refresh tokens, and holds long polls.
    private func client(_ accepted: String, _ gate: TransportGate) async throws -> (LarderClient, ScriptedTransport) {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            let problem: Fields = [.contentType: "application/problem+json"]
            guard !request.url.hasSuffix("/refresh") else {
                return .text(#"{"type":"/problems/invalid-refresh-token"}"#, status: .unauthorized, fields: problem)
            }
            guard request.fields[.authorization] == "Bearer \(accepted)" else {
                return .text(#"{"type":"/problems/token-expired"}"#, status: .unauthorized, fields: problem)
            }
            if request.url.contains("wait=") { try await gate.pass() }
            return .text(
                #"{"items": [], "nextToken": "t1", "hasMore": false}"#,
                fields: [.contentType: "application/json"]
            )
        }
        var configuration = LarderClient.Configuration(transport: transport)
        configuration.cache = scene.configuration(inMemory: true)
        configuration.services = .none
        configuration.liveKinds = [.longPoll]
        let client = try await LarderClient(
            server: "http://server",
            account: "ana",
            directory: scene.path,
            configuration
        )
        return (client, transport)
    }

    private static func grant(_ token: String) -> BearerSession.Grant {
        BearerSession.Grant(accessToken: token, refreshToken: "r\(token)", userID: "ana", lifetime: .seconds(600))
    }

    @Test func `live updates end with the session and continue after a sign-in`() async throws {
        let gate = TransportGate()
        let (client, transport) = try await client("2", gate)
        let states = SequenceRecorder(client.live.states)
        // The server rejects the token of the first sign-in.
        try await client.session.signIn { _ throws(LarderError) in Self.grant("1") }
        await states.wait { $0.count > 1 && $0.last == .idle }
        #expect(client.session.state == .expired(userID: "ana"))
        let count = transport.requests.count
        for _ in 0..<5 {
            try await scene.clock.waitForSleepers()
            scene.clock.advance(by: .seconds(30))
        }
        #expect(transport.requests.count == count)
        try await client.session.signIn { _ throws(LarderError) in Self.grant("2") }
        await gate.waitForHeld()
        client.close()
    }

    @Test func `live updates continue after a sign-in by another process`() async throws {
        let gate = TransportGate()
        let (client, _) = try await client("2", gate)
        let states = SequenceRecorder(client.live.states)
        try await client.session.signIn { _ throws(LarderError) in Self.grant("1") }
        await states.wait { $0.count > 1 && $0.last == .idle }
        let (other, _) = try await self.client("2", TransportGate(isOpen: true))
        other.pause()
        try await other.session.signIn { _ throws(LarderError) in Self.grant("2") }
        try await scene.clock.waitForSleepers()
        scene.clock.advance(by: .seconds(30))
        await gate.waitForHeld()
        #expect(client.session.state == .signedIn(userID: "ana"))
        other.close()
        client.close()
    }

    @Test func `paused live updates do not continue when the tokens change`() async throws {
        let gate = TransportGate()
        let (client, transport) = try await client("2", gate)
        try await client.session.signIn { _ throws(LarderError) in Self.grant("2") }
        await gate.waitForHeld()
        let states = SequenceRecorder(client.live.states)
        client.pause()
        await states.wait { $0.last == .idle }
        let count = transport.requests.count
        try await client.session.use(token: "2", userID: "ana")
        await rest()
        #expect(client.live.state == .idle && transport.requests.count == count)
        client.start()
        await gate.waitForHeld()
        client.close()
    }
}

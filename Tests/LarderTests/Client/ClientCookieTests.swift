import Larder
import LarderHTTP
import LarderTesting
import LarderTransport
import TestSupport
import Testing

@Suite("Client: cookies", .oneMinute)
struct ClientCookieTests {
    private let fixture = ClientFixture()

    private func transport() -> ScriptedTransport {
        ScriptedTransport { _, number in ClientFixture.json("{}", [.setCookie: "n=\(number)"]) }
    }

    @Test func `without the setting no cookie is kept`() async throws {
        let transport = transport()
        let client = try await fixture.client(transport)
        for _ in 0..<2 { try await client.source.send(.post, "/x") }
        #expect(client.cookies == nil)
        #expect(transport.requests.allSatisfy { !$0.fields.contains(.cookie) })
        client.close()
    }

    @Test func `requests have the cookies of earlier replies until the session ends`() async throws {
        let transport = transport()
        let client = try await fixture.client(transport) { $0.keepsCookies = true }
        try await client.session.use(token: "t", userID: "ana")
        for _ in 0..<2 { try await client.source.send(.post, "/x") }
        _ = try await client.http.send(TransportRequest(url: "http://server/y"))
        #expect(transport.requests.map { $0.fields[.cookie] } == [nil, "n=1", "n=2"])
        await client.session.signOut()
        #expect(client.cookies?.count == 0)
        try await client.session.use(token: "t", userID: "ana")
        try await client.source.send(.post, "/x")
        #expect(transport.requests.last?.fields[.cookie] == nil)
        #expect(client.cookies?.count == 1)
        try await client.signOut()
        #expect(client.cookies?.count == 0)
    }
}

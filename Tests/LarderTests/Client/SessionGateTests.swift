import Larder
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Client: sessions and overloaded hosts", .oneMinute)
struct SessionGateTests {
    private let fixture = ClientFixture()
    private var clock: ManualClock { fixture.scene.clock }

    @Test(arguments: [nil, "30"])
    func `a renewal closes the gate of its host and waits at it, and a sign-in does not`(retryAfter: String?)
        async throws
    {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            guard request.url.hasSuffix("/token") else { return ClientFixture.json("{}") }
            var fields = Fields()
            if let retryAfter { fields.set(.retryAfter, retryAfter) }
            return ClientFixture.json("{}", status: .serviceUnavailable, fields)
        }
        let client = try await fixture.client(transport)
        func signIn() async throws {
            try await client.session.signIn { source throws(LarderError) in
                try await source.send(.post, "/login")
                return ClientFixture.grant("1")
            }
        }
        try await signIn()
        clock.advance(by: .seconds(601))
        let first = await #expect(throws: LarderError.self) { try await client.session.accessToken() }
        #expect(first?.status == 503 && transport.requests.count == 2)
        let wait: Duration = retryAfter == nil ? .milliseconds(500) : .seconds(30)
        let second = await #expect(throws: LarderError.self) { try await client.session.accessToken() }
        #expect(second?.code == .offline && second?.retryAfter == wait && transport.requests.count == 2)
        // A request that needs the token waits as long.
        let read = await #expect(throws: LarderError.self) { try await client.source.send(.get, "/a") }
        #expect(read?.retryAfter == wait && transport.requests.count == 2)
        try await signIn()
        #expect(transport.requests.count == 3)
        clock.advance(by: wait)
        try await client.source.send(.get, "/a")
        #expect(transport.requests.last?.fields[.authorization] == "Bearer 1")
    }

    @Test(arguments: [false, true])
    func `another user cannot sign in to an account before its content is erased`(hasExpired: Bool) async throws {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            ClientFixture.json("{}", status: request.url.hasSuffix("/token") ? .badRequest : .ok)
        }
        let revoked = Mutex<[String]>([])
        let client = try await fixture.client(transport) { configuration in
            configuration.session.revoke = { _, token throws(LarderError) in revoked.withLock { $0.append(token) } }
        }
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        if hasExpired {
            clock.advance(by: .seconds(601))
            await #expect(throws: LarderError.self) { try await client.source.send(.get, "/a") }
            #expect(client.session.state == .expired(userID: "ana"))
        }
        let first = await #expect(throws: LarderError.self) {
            try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("2", user: "ben") }
        }
        let second = await #expect(throws: LarderError.self) {
            try await client.session.use(token: "3", userID: "ben")
        }
        #expect(first?.code == .invalidArgument && second?.code == .invalidArgument)
        #expect(client.session.userID == "ana")
        #expect(revoked.withLock { $0 } == ["2"])
        await client.session.signOut()
        let third = await #expect(throws: LarderError.self) {
            try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("4", user: "ben") }
        }
        #expect(third?.code == .invalidArgument && client.session.state == .signedOut)
        #expect(revoked.withLock { $0 } == ["2", "1", "4"])
        try await client.session.use(token: "5", userID: "ana")
        try await client.signOut()
        let next = try await fixture.client(transport)
        try await next.session.use(token: "6", userID: "ben")
        #expect(next.session.state == .signedIn(userID: "ben"))
        next.close()
    }

    @Test func `a renewal that a person's refresh needs does not wait`() async throws {
        let isOverloaded = Mutex(true)
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            guard request.url.hasSuffix("/token") else { return ClientFixture.json("{}") }
            guard isOverloaded.withLock({ $0 }) else { return ClientFixture.json(#"{"access": "2"}"#) }
            return ClientFixture.json("{}", status: .serviceUnavailable, [.retryAfter: "30"])
        }
        let client = try await fixture.client(transport)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        let word = Resource<String>("word") { [source = client.source] _ in
            try await source.send(.get, "/a")
            return .value("a")
        }
        clock.advance(by: .seconds(601))
        let first = await #expect(throws: LarderError.self) { try await client.cache.value(word) }
        #expect(first?.retryAfter == .seconds(30) && transport.requests.count == 1)
        isOverloaded.withLock { $0 = false }
        let second = await #expect(throws: LarderError.self) { try await client.source.send(.get, "/b") }
        #expect(second?.retryAfter == .seconds(30) && transport.requests.count == 1)
        #expect(try await client.cache.refresh(word).value == "a")
        #expect(transport.requests.map(\.isUserInitiated) == [false, true, true])
        #expect(transport.requests.last?.fields[.authorization] == "Bearer 2")
    }
}

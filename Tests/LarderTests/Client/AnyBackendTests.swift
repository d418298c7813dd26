import Foundation
import Larder
import LarderHTTP
import LarderImages
import LarderResources
import LarderTesting
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// What servers do that were not written for this client.
@Suite("Client: any backend", .oneMinute)
struct AnyBackendTests {
    private let fixture = ClientFixture()

    private func note(_ client: APIClient) -> Resource<Note> {
        .entity("1") { try await client.source.fetch("/notes/1", context: $0) }
    }

    @Test(arguments: [false, true])
    func `a server that writes no-store by habit can be overruled, and an event says what was not stored`(
        isOverruled: Bool
    ) async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            ClientFixture.json(#"{"id": "1", "text": "a", "revision": 1}"#, [.cacheControl: "no-store"])
        }
        let unstored = Mutex<[String]>([])
        func open() async throws -> APIClient {
            try await fixture.client(transport) { configuration in
                configuration.cache = fixture.scene.configuration()
                configuration.cache.onEvent = { event in
                    if case .notStored(let resource) = event { unstored.withLock { $0.append(resource) } }
                }
                if isOverruled { configuration.http.correctFields = { fields, _ in fields.remove(.cacheControl) } }
            }
        }
        let client = try await open()
        let first = try await client.cache.value(note(client))
        #expect(first.text == "a")
        client.close()
        let restarted = try await open()
        let stored = try? await restarted.cache.value(note(restarted), .cacheOnly)
        #expect((stored != nil) == isOverruled)
        #expect(unstored.withLock { $0 } == (isOverruled ? [] : ["note"]))
    }

    @Test func `the content of a reply says when a read and the host are asked again`() async throws {
        let transport = ScriptedTransport { _, _ throws(TransportError) in
            ClientFixture.json(#"{"retryAfterMilliseconds": 5900}"#, status: .tooManyRequests)
        }
        let client = try await fixture.client(transport) {
            $0.http.retryAfter = { reply in
                String(decoding: reply.body, as: UTF8.self).contains("5900") ? .milliseconds(5_900) : nil
            }
        }
        let error = await #expect(throws: LarderError.self) {
            let _: Fetched<Note> = try await client.source.fetch("/notes/1", context: FetchContext())
        }
        #expect(error?.status == 429 && error?.retryAfter == .milliseconds(5_900))
        let held = await #expect(throws: LarderError.self) {
            let _: Fetched<Note> = try await client.source.fetch("/notes/2", context: FetchContext())
        }
        #expect(held?.code == .offline && held?.retryAfter == .milliseconds(5_900) && transport.requests.count == 1)
    }

    @Test func `an action with a limit of its own holds nothing else back`() async throws {
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            request.method == .post
                ? ClientFixture.json("{}", status: .tooManyRequests, [.retryAfter: "6"])
                : ClientFixture.json(#"{"id": "1", "text": "a", "revision": 1}"#)
        }
        let client = try await fixture.client(transport) { $0.retryScope = { $0.method == .post ? "post" : "" } }
        await #expect(throws: LarderError.self) { try await client.source.send(.post, "/notes") }
        let read = try await client.cache.value(note(client))
        #expect(read.text == "a")
        let held = await #expect(throws: LarderError.self) { try await client.source.send(.post, "/notes") }
        #expect(held?.code == .offline && transport.requests.count == 2)
    }

    @Test func `a renewal that names neither the user nor a refresh token keeps both`() async throws {
        let renewals = Mutex<[String]>([])
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            request.fields[.authorization] == "Bearer first"
                ? ClientFixture.json("{}", status: .unauthorized) : ClientFixture.json("{}")
        }
        let client = try await fixture.client(transport) {
            $0.session = BearerSession.Endpoints(
                renew: { _, token throws(LarderError) in
                    let number = renewals.withLock { renewals in
                        renewals.append(token)
                        return renewals.count
                    }
                    return BearerSession.Grant(accessToken: "renewed \(number)", lifetime: .seconds(60))
                },
                endsSession: { $0.status == 400 }
            )
        }
        try await client.session.signIn { _ throws(LarderError) in
            BearerSession.Grant(accessToken: "first", refreshToken: "again", userID: "ana", lifetime: .seconds(60))
        }
        try await client.source.send(.put, "/a")
        #expect(client.session.state == .signedIn(userID: "ana"))
        fixture.scene.clock.advance(by: .seconds(61))
        try await client.source.send(.put, "/a")
        #expect(renewals.withLock { $0 } == ["again", "again"] && client.session.userID == "ana")
    }

    @Test func `a sign-in whose grant names nobody is refused, and its token is revoked`() async throws {
        let revoked = Mutex<[String]>([])
        let client = try await fixture.client(ScriptedTransport(script: [])) {
            $0.session.revoke = { _, token in revoked.withLock { $0.append(token) } }
        }
        let error = await #expect(throws: LarderError.self) {
            try await client.session.signIn { _ throws(LarderError) in
                BearerSession.Grant(accessToken: "first", lifetime: .seconds(60))
            }
        }
        #expect(error?.code == .invalidArgument && client.session.state == .signedOut)
        #expect(revoked.withLock { $0 } == ["first"])
    }

    @Test func `pictures of the server are authorized, and found again after a renewal and under another signature`()
        async throws
    {
        let picture = try #require(
            Data(
                base64Encoded:
                    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
            )
        )
        let token = Mutex("first")
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            if request.url.hasSuffix("/token") { return ClientFixture.json(#"{"access": "second"}"#) }
            let isOwn = request.url.hasPrefix("http://server/")
            if isOwn, request.fields[.authorization] != "Bearer \(token.withLock { $0 })" {
                return ClientFixture.json("{}", status: .unauthorized)
            }
            return ScriptedTransport.Reply(
                fields: [.contentType: "image/png", .cacheControl: "max-age=600"],
                [.bytes(Array(picture))]
            )
        }
        let client = try await fixture.client(transport)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("first") }
        func load(_ url: String, _ identity: String? = nil) async throws {
            _ = try await client.images.image(for: ImageRequest(url: url, identity: identity))
        }
        try await load("http://server/a.png")
        token.withLock { $0 = "second" }
        try await load("http://server/a.png")
        #expect(transport.requests.map { $0.fields[.authorization] } == ["Bearer first"])
        try await load("http://server/b.png")
        #expect(
            transport.requests.map { $0.fields[.authorization] }.suffix(3) == ["Bearer first", nil, "Bearer second"]
        )
        try await load("http://files/c.png?signature=1", "c")
        try await load("http://files/c.png?signature=2", "c")
        #expect(transport.requests.count == 5 && transport.requests.last?.fields.contains(.authorization) == false)
    }
}

import Foundation
import LarderHTTP
import LarderModels
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder
@testable import LarderDemo

@Suite("Session: concurrent renewal", .oneMinute)
struct SessionTests {
    private let scene = CacheScene()
    private let gate = TransportGate()

    /// A server whose renewal is held.
    private func server(isRejected: Bool) -> ScriptedTransport {
        ScriptedTransport { [gate] request, _ throws(TransportError) in
            let fields: Fields = [.contentType: "application/json"]
            if request.method == .delete { return .text("", status: .noContent) }
            guard request.url.hasSuffix("/refresh") else { return .text(Self.grant("old"), fields: fields) }
            return isRejected
                ? .text(#"{"type":"/problems/invalid-refresh-token"}"#, status: .unauthorized, fields: fields).held(
                    by: gate
                )
                : .text(Self.grant("new"), fields: fields).held(by: gate)
        }
    }

    /// A session with expired tokens, and its server.
    private func outdated(isRejected: Bool) async throws -> (BearerSession, ScriptedTransport) {
        let transport = server(isRejected: isRejected)
        let session = try await BearerSession(
            try scene.cache(),
            HTTPSource("http://server", transport: transport),
            .demo
        )
        try await session.signIn(handle: "ana", password: "larder")
        scene.clock.advance(by: .seconds(3_600))
        return (session, transport)
    }

    /// The tokens that were revoked.
    private func revoked(_ transport: ScriptedTransport) -> [String?] {
        transport.requests.filter { $0.method == .delete }.map { $0.fields[.authorization] }
    }

    @Test(arguments: [true, false])
    func `a sign-in during a renewal wins`(isRejected: Bool) async throws {
        let (session, _) = try await outdated(isRejected: isRejected)
        let asking = Task { try await session.accessToken() }
        await gate.waitForHeld()
        try await session.use(token: "another", userID: "user_1")
        gate.open()
        #expect(try await asking.value == "another")
        #expect(session.state == .signedIn(userID: "user_1"))
        #expect(try await session.accessToken() == "another")
    }

    @Test(arguments: [true, false])
    func `a sign-out during a renewal wins, and what is granted after it is revoked`(isRejected: Bool) async throws {
        let (session, transport) = try await outdated(isRejected: isRejected)
        let asking = Task { try? await session.accessToken() }
        await gate.waitForHeld()
        await session.signOut()
        gate.open()
        _ = await asking.value
        #expect(session.state == .signedOut)
        #expect(revoked(transport) == (isRejected ? ["Bearer old"] : ["Bearer old", "Bearer new"]))
    }

    @Test func `tokens that are granted after the sign-out of a client are revoked, and not kept`() async throws {
        let fixture = ClientFixture()
        let transport = server(isRejected: false)
        let client = try await fixture.client(transport) { $0.session = .demo }
        try await client.session.signIn(handle: "ana", password: "larder")
        fixture.scene.clock.advance(by: .seconds(3_600))
        let asking = Task { try? await client.session.accessToken() }
        await gate.waitForHeld()
        try await client.signOut()
        gate.open()
        _ = await asking.value
        #expect(revoked(transport) == ["Bearer old", "Bearer new"])
        let isEmpty = client.session.current.withLock { $0.unstored == nil && $0.tokens == nil }
        #expect(isEmpty)
    }

    @Test func `a renewal that has waited for another process asks for nothing after a sign-out`() async throws {
        let (session, transport) = try await outdated(isRejected: false)
        let other = FileProcessLock(path: scene.outboxPath + "/store.session")
        #expect(try other.take())
        let asking = Task { try? await session.accessToken() }
        try await scene.clock.waitForSleepers()
        await session.signOut()
        other.release()
        gate.open()
        scene.clock.advance(by: .seconds(1))
        _ = await asking.value
        #expect(!transport.requests.contains { $0.url.hasSuffix("/refresh") })
    }

    @Test func `a sign-out revokes the newest tokens, also if they could not be stored`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let transport = server(isRejected: false)
        gate.open()
        let source = HTTPSource("http://server", transport: transport)
        let session = try await BearerSession(try LarderCache(configuration), source, .demo)
        try await session.signIn(handle: "ana", password: "larder")
        scene.clock.advance(by: .seconds(3_600))
        killable.fail(.full, untilHealed: true)
        await #expect(throws: LarderError.self) { try await session.accessToken() }
        killable.heal()
        await session.signOut()
        #expect(revoked(transport) == ["Bearer new"])
    }

    @Test func `an ended session sends reads, and no writes until the next sign-in`() async throws {
        let (session, transport) = try await outdated(isRejected: true)
        gate.open()
        let source = HTTPSource("http://server", transport: transport, authorizer: session)
        for _ in 1...3 {
            let error = await #expect(throws: LarderError.self) { try await source.send(.put, "/v1/thing") }
            #expect(error?.code == .unauthorized)
        }
        #expect(session.state == .expired(userID: "user_1"))
        #expect(!transport.requests.contains { $0.method == .put })
        #expect(transport.requests.count { $0.url.hasSuffix("/refresh") } == 1)
        _ = try await source.send(TransportRequest(url: "http://server/v1/feed"))
        try await session.use(token: "another", userID: "user_1")
        try await source.send(.put, "/v1/thing")
        #expect(transport.requests.last?.fields[.authorization] == "Bearer another")
    }

    @Test(arguments: [false, true])
    func `a user's changes wait for the next sign-in after a sign-out of the session`(isRestarted: Bool) async throws {
        let fixture = ClientFixture()
        let transport = ScriptedTransport { _, _ in .text("", status: .noContent) }
        var client = try await fixture.client(transport)
        try await client.session.use(token: "1", userID: "ana")
        fixture.scene.isOnline.withLock { $0 = false }
        try client.write(.post, "/comments", ["text": "a"])
        await client.session.signOut()
        if isRestarted {
            client.close()
            client = try await fixture.client(transport)
        }
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        await reached { [client] in
            client.cache.outbox.entries.first.map { $0.error?.code == .unauthorized } ?? true
        }
        #expect(transport.requests.isEmpty)
        _ = try await client.source.send(TransportRequest(url: "http://server/feed"))
        try await client.session.use(token: "2", userID: "ana")
        try await client.cache.outbox.drained()
        let writes = transport.requests.filter { $0.method == .post }
        #expect(writes.map { $0.fields[.authorization] } == ["Bearer 2"])
        client.close()
    }

    @Test func `an operation of the app waits for the next sign-in after a sign-out of the session`() async throws {
        let fixture = ClientFixture()
        let transport = ScriptedTransport { _, _ in .text("", status: .noContent) }
        let source = Mutex<HTTPSource?>(nil)
        let operation = WriteBehind<String, Bool>("star", scope: { $0 }, changes: { _, _ in }) { attempts in
            var outcomes: [Outbox.Outcome<Bool>] = []
            for attempt in attempts {
                do throws(LarderError) {
                    try await source.withLock { $0 }?.send(.put, "/stars/\(attempt.input)")
                    outcomes.append(.accepted(true))
                } catch {
                    outcomes.append(.retry(error))
                }
            }
            return outcomes
        }
        let client = try await fixture.client(transport) {
            $0.operations = { made, _ in
                source.withLock { $0 = made }
                return [operation]
            }
        }
        try await client.session.use(token: "1", userID: "ana")
        fixture.scene.isOnline.withLock { $0 = false }
        try client.cache.enqueue("7", operation)
        await client.session.signOut()
        fixture.scene.isOnline.withLock { $0 = true }
        client.cache.networkReturned()
        await reached { client.cache.outbox.entries.first.map { $0.error?.code == .unauthorized } ?? true }
        #expect(transport.requests.isEmpty)
        // A direct request may be one that needs no user.
        try await client.source.send(.post, "/password")
        #expect(transport.requests.map { $0.fields[.authorization] } == [nil])
        try await client.session.use(token: "2", userID: "ana")
        try await client.cache.outbox.drained()
        #expect(transport.requests.last?.fields[.authorization] == "Bearer 2")
        client.close()
    }

    @Test func `a change that waits for new tokens is not sent without them after a sign-out`() async throws {
        let fixture = ClientFixture()
        let transport = ScriptedTransport { [gate] request, _ in
            request.url.hasSuffix("/token")
                ? ClientFixture.json(#"{"access":"2"}"#).held(by: gate)
                : ClientFixture.json("{}", status: .unauthorized)
        }
        let client = try await fixture.client(transport)
        try await client.session.signIn { _ throws(LarderError) in ClientFixture.grant("1") }
        try client.write(.post, "/comments", ["text": "a"])
        await gate.waitForHeld()
        await client.session.signOut()
        gate.open()
        await reached { client.cache.outbox.entries.first.map { $0.error?.code == .unauthorized } ?? true }
        #expect(transport.requests.count { $0.url.hasSuffix("/comments") } == 1)
        #expect(client.cache.outbox.entries.count == 1)
        client.close()
    }

    @Test func `an account that never had a user sends changes without credentials`() async throws {
        let fixture = ClientFixture()
        let transport = ScriptedTransport { _, _ in .text("", status: .noContent) }
        let client = try await fixture.client(transport)
        try client.write(.post, "/comments", ["text": "a"])
        try await client.cache.outbox.drained()
        #expect(transport.requests.map { $0.fields[.authorization] } == [nil])
        client.close()
    }

    @Test func `cancelling a waiter does not cancel the renewal`() async throws {
        let (session, transport) = try await outdated(isRejected: false)
        let asking = Task { try await session.accessToken() }
        await gate.waitForHeld()
        asking.cancel()
        // The server has not replied yet.
        let error = await #expect(throws: LarderError.self) { try await asking.value }
        #expect(error?.code == .cancelled)
        let second = Task { try await session.accessToken() }
        gate.open()
        #expect(try await second.value == "new")
        #expect(transport.requests.count { $0.url.hasSuffix("/refresh") } == 1)
    }

    @Test func `a failed sign-in leaves the session signed out, wherever the store fails`() async throws {
        let fields: Fields = [.contentType: "application/json"]
        var isSignedIn = false
        for step in 1...20 {
            let scene = CacheScene()
            let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
            var configuration = scene.configuration()
            configuration.storage = .store(try killable.store())
            let cache = try LarderCache(configuration)
            let transport = ScriptedTransport { _, _ in .text(Self.grant("new"), fields: fields) }
            let session = try await BearerSession(cache, HTTPSource("http://server", transport: transport), .demo)
            killable.fail(.full, atStep: step, untilHealed: true)
            do {
                let profile = try await session.signIn(handle: "ana", password: "larder")
                #expect(session.state == .signedIn(userID: profile.id), "step \(step)")
                isSignedIn = true
            } catch {
                #expect(session.state == .signedOut && error.code == .storage, "step \(step)")
            }
            cache.close()
        }
        #expect(isSignedIn)
    }

    @Test func `a stored session that cannot be decoded is reported, and a sign-in replaces it`() async throws {
        let fields: Fields = [.contentType: "application/json"]
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            .text(Self.grant(request.url.hasSuffix("/refresh") ? "new" : "old"), fields: fields)
        }
        let source = HTTPSource("http://server", transport: transport)
        let cache = try scene.cache()
        let path = scene.outboxPath + "/store.secret-session"
        func damage() throws { try Data("secret-token".utf8).write(to: URL(fileURLWithPath: path)) }
        try damage()
        let session = try await BearerSession(cache, source, .demo)
        #expect(session.state == .signedOut)
        let reports = scene.events.withLock { events in
            events.compactMap { if case .storageFailed(let error) = $0 { error } else { nil } }
        }
        #expect(reports.map(\.code) == [.storage])
        #expect(!reports.contains { "\($0) \($0.cause.map { "\($0)" } ?? "")".contains("secret") })
        try await session.signIn(handle: "ana", password: "larder")
        #expect(try await BearerSession(cache, source, .demo).state == .signedIn(userID: "user_1"))
        // Damage to the stored copy does not stop a renewal, which stores the new tokens in its place.
        try damage()
        scene.clock.advance(by: .seconds(3_600))
        #expect(try await session.accessToken() == "new")
        #expect(try await BearerSession(cache, source, .demo).state == .signedIn(userID: "user_1"))
    }

    @Test func `a failed revocation is reported and does not stop the sign-out`() async throws {
        let fields: Fields = [.contentType: "application/json"]
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            guard request.method == .delete else { return .text(Self.grant("old"), fields: fields) }
            throw TransportError(.interrupted, "The connection was closed.")
        }
        let session = try await BearerSession(
            try scene.cache(),
            HTTPSource("http://server", transport: transport),
            .demo
        )
        try await session.signIn(handle: "ana", password: "larder")
        await session.signOut()
        #expect(session.state == .signedOut)
        let failures = scene.events.withLock { events in
            events.compactMap { if case .failed("larder.session", let error) = $0 { error.code } else { nil } }
        }
        #expect(failures == [.offline])
    }

    private static func grant(_ token: String) -> String {
        """
        {"accessToken": "\(token)", "refreshToken": "again", "expiresIn": 60, "tokenType": "Bearer", "user": {"id": "user_1",
        "handle": "ana", "displayName": "Ana", "bio": "", "location": "", "avatarId": null, "version": 1,
        "followerCount": 0, "followingCount": 0, "postCount": 0, "createdAt": "2026-01-01T00:00:00Z",
        "joinedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}}
        """
    }
}

import LarderHTTP
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

/// An authorization server that rotates refresh tokens: each one is accepted once.
private final class RotatingServer: Sendable {
    struct State {
        var count = 0
        var refresh = "none"
        var renewals: [String] = []
        /// The outcomes of the next renewals; nil: a normal reply.
        var replies: [ScriptedTransport.Reply?] = []
        /// The reply after the renewal was carried out.
        var losses = 0
        /// Whether the previous token is accepted too (grace period).
        var acceptsPrevious = false
        var previous = "none"
    }

    let state = Mutex(State())
    let gate = TransportGate(isOpen: true)
    private static let json: Fields = [.contentType: "application/json"]

    var renewals: [String] { state.withLock { $0.renewals } }

    func set(_ replies: ScriptedTransport.Reply?...) { state.withLock { $0.replies = replies } }

    func transport() -> ScriptedTransport {
        ScriptedTransport { [self] request, _ throws(TransportError) in
            guard request.url.hasSuffix("/refresh") else { return grant() }
            try await gate.pass()
            let body = String(decoding: request.body, as: UTF8.self)
            let token = body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? ""
            let (scripted, isKnown, isLost) = state.withLock { state -> (ScriptedTransport.Reply?, Bool, Bool) in
                state.renewals.append(token)
                let scripted = state.replies.isEmpty ? nil : state.replies.removeFirst()
                let isKnown = token == state.refresh || (state.acceptsPrevious && token == state.previous)
                guard scripted == nil, isKnown, state.losses > 0 else { return (scripted, isKnown, false) }
                state.losses -= 1
                return (nil, isKnown, true)
            }
            if let scripted { return scripted }
            guard isKnown else {
                return .text(#"{"type":"/problems/invalid-refresh-token"}"#, status: .unauthorized, fields: Self.json)
            }
            let reply = grant()
            return isLost ? .failure(TransportError(.interrupted, "The reply was lost.")) : reply
        }
    }

    private func grant() -> ScriptedTransport.Reply {
        let count = state.withLock { state in
            state.count += 1
            state.previous = state.refresh
            state.refresh = "refresh-\(state.count)"
            return state.count
        }
        return .text(
            """
            {"accessToken": "access-\(count)", "refreshToken": "refresh-\(count)", "expiresIn": 60, "tokenType": "Bearer",
            "user": {"id": "user_1", "handle": "ana", "displayName": "Ana", "bio": "", "location": "", "avatarId": null,
            "version": 1, "followerCount": 0, "followingCount": 0, "postCount": 0, "createdAt": "2026-01-01T00:00:00Z",
            "joinedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}}
            """,
            fields: Self.json
        )
    }
}

@Suite("Session: shared processes and lost replies", .oneMinute)
struct SessionSharingTests {
    private let scene = CacheScene()
    private let server = RotatingServer()

    /// Sessions of two processes with one store, after the access token has expired.
    private func pair() async throws -> (BearerSession, BearerSession) {
        let first = try await BearerSession(
            try scene.cache(),
            HTTPSource("http://server", transport: server.transport()),
            .demo
        )
        try await first.signIn(handle: "ana", password: "larder")
        let second = try await BearerSession(
            try scene.cache(),
            HTTPSource("http://server", transport: server.transport()),
            .demo
        )
        #expect(second.state == .signedIn(userID: "user_1"))
        scene.clock.advance(by: .seconds(3_600))
        return (first, second)
    }

    @Test func `a process uses the grant that another has stored`() async throws {
        let (first, second) = try await pair()
        #expect(try await first.accessToken() == "access-2")
        #expect(try await second.accessToken() == "access-2")
        #expect(server.renewals == ["refresh-1"])
        #expect(first.state == .signedIn(userID: "user_1") && second.state == .signedIn(userID: "user_1"))
        // The second process renews with the same token, and the first one adopts the result.
        scene.clock.advance(by: .seconds(3_600))
        #expect(try await second.accessToken() == "access-3")
        #expect(try await first.accessToken() == "access-3")
        #expect(server.renewals == ["refresh-1", "refresh-2"])
    }

    @Test func `a process waits for the renewal of another and uses its tokens`() async throws {
        let (first, second) = try await pair()
        server.gate.close()
        let renewing = Task { try await first.accessToken() }
        await server.gate.waitForHeld()
        let waiting = Task { try await second.accessToken() }
        try await scene.clock.waitForSleepers()
        server.gate.open()
        #expect(try await renewing.value == "access-2")
        scene.clock.advance(by: .seconds(1))
        #expect(try await waiting.value == "access-2")
        #expect(server.renewals == ["refresh-1"])
    }

    @Test func `a rejected refresh token does not end the session if another process has stored newer tokens`()
        async throws
    {
        let (first, second) = try await pair()
        server.set(
            .text(
                #"{"type":"/problems/invalid-refresh-token"}"#,
                status: .unauthorized,
                fields: [.contentType: "application/problem+json"]
            )
        )
        server.gate.close()
        let renewing = Task { try await second.accessToken() }
        await server.gate.waitForHeld()
        try await first.use(token: "developer", userID: "user_1")
        server.gate.open()
        #expect(try await renewing.value == "developer")
        #expect(second.state == .signedIn(userID: "user_1"))
    }

    @Test func `an expired session continues when another process has signed in`() async throws {
        let (first, second) = try await pair()
        server.set(
            .text(
                #"{"type":"/problems/invalid-refresh-token"}"#,
                status: .unauthorized,
                fields: [.contentType: "application/problem+json"]
            )
        )
        await #expect(throws: LarderError.self) { try await second.accessToken() }
        #expect(second.state == .expired(userID: "user_1"))
        try await first.signIn(handle: "ana", password: "larder")
        var rejected = TransportRequest(url: "http://server/v1/me")
        try await second.authorize(&rejected)
        #expect(try await second.renew(after: rejected))
        #expect(second.state == .signedIn(userID: "user_1"))
        #expect(try await second.accessToken() == "access-2")
    }

    private func session(inMemory: Bool = false) async throws -> BearerSession {
        try await BearerSession(
            try scene.cache(inMemory: inMemory),
            HTTPSource("http://server", transport: server.transport()),
            .demo
        )
    }

    @Test func `another user cannot sign in through another process`() async throws {
        // Opened before the sign-in, so that it has no tokens.
        let second = try await session()
        let first = try await session()
        try await first.use(token: "1", userID: "ana")
        let error = await #expect(throws: LarderError.self) { try await second.use(token: "2", userID: "ben") }
        #expect(error?.code == .invalidArgument && second.state == .signedOut)
        #expect(try await session().state == .signedIn(userID: "ana"))
    }

    @Test func `one of several users who sign in at one moment has the account`() async throws {
        let session = try await session()
        let outcomes = await withTaskGroup { group in
            for number in 0..<8 {
                group.addTask {
                    do throws(LarderError) {
                        try await session.use(token: "\(number)", userID: "user \(number)")
                    } catch {
                        return error.code.rawValue
                    }
                    return "user \(number)"
                }
            }
            return await group.reduce(into: [String]()) { $0.append($1) }
        }
        let accepted = outcomes.filter { $0.hasPrefix("user") }
        #expect(accepted.count == 1 && outcomes.count { $0 == "invalidArgument" } == 7)
        #expect(session.userID == accepted.first)
    }

    @Test func `a sign-in that waits for another process is compared with the user who was faster`() async throws {
        let (holder, first, second) = (try await session(), try await session(), try await session())
        #expect(try holder.storingLock?.take() == true)
        let waiting = Task { try await second.use(token: "2", userID: "ben") }
        try await scene.clock.waitForSleepers()
        holder.storingLock?.release()
        try await first.use(token: "1", userID: "ana")
        scene.clock.advance(by: .seconds(1))
        let error = await #expect(throws: LarderError.self) { try await waiting.value }
        #expect(error?.code == .invalidArgument && second.state == .signedOut)
    }

    @Test func `another user cannot sign in after the loss of the tokens`() async throws {
        let first = try await session()
        try await first.use(token: "1", userID: "ana")
        try await first.secrets?.delete(BearerSession.secretName)
        let next = try await session()
        #expect(next.state == .signedOut)
        let error = await #expect(throws: LarderError.self) { try await next.use(token: "2", userID: "ben") }
        #expect(error?.code == .invalidArgument && next.state == .signedOut)
        try await next.use(token: "3", userID: "ana")
        #expect(next.state == .signedIn(userID: "ana"))
    }

    @Test func `another user cannot sign in after the loss of the owner`() async throws {
        let first = try await session()
        try await first.use(token: "1", userID: "ana")
        try first.cache.outboxDisk?.write { transaction in
            try transaction.setMetadata(nil, for: BearerSession.ownerKey)
        }
        let next = try await session()
        await next.signOut()
        let last = try await session()
        for late in [last, next] {
            let error = await #expect(throws: LarderError.self) { try await late.use(token: "2", userID: "ben") }
            #expect(error?.code == .invalidArgument && late.state == .signedOut)
        }
    }

    @Test func `another user cannot sign in to a cache in memory after a sign-out of the session`() async throws {
        let session = try await session(inMemory: true)
        try await session.use(token: "1", userID: "ana")
        await session.signOut()
        let error = await #expect(throws: LarderError.self) { try await session.use(token: "2", userID: "ben") }
        #expect(error?.code == .invalidArgument && session.state == .signedOut)
        try await session.use(token: "3", userID: "ana")
        #expect(session.state == .signedIn(userID: "ana"))
    }

    @Test func `a renewal with a lost reply is repeated with the same token`() async throws {
        let (first, _) = try await pair()
        server.state.withLock { state in
            state.acceptsPrevious = true
            state.losses = 1
        }
        #expect(try await first.accessToken() == "access-3")
        #expect(server.renewals == ["refresh-1", "refresh-1"])
        #expect(first.state == .signedIn(userID: "user_1"))
    }

    @Test(arguments: [400, 401, 403, 408, 409, 425, 429, 500, 502, 503, 504])
    func `only a rejection by the API itself ends the session`(status: Int) async throws {
        let (first, _) = try await pair()
        let foreign = ScriptedTransport.Reply.text(
            "no",
            status: Status(code: status),
            fields: [.contentType: "text/plain"]
        )
        server.set(foreign)
        await #expect(throws: LarderError.self) { try await first.accessToken() }
        #expect(first.state == .signedIn(userID: "user_1"))
        #expect(try await first.accessToken() == "access-2")
        scene.clock.advance(by: .seconds(3_600))
        // A problem of the API that is not about the refresh token.
        let problem: Fields = [.contentType: "application/problem+json"]
        let other = #"{"type":"/problems/token-expired"}"#
        server.set(.text(other, status: Status(code: status), fields: problem))
        await #expect(throws: LarderError.self) { try await first.accessToken() }
        #expect(first.state == .signedIn(userID: "user_1"))
        let rejected = #"{"type":"/problems/invalid-refresh-token"}"#
        server.set(.text(rejected, status: Status(code: status), fields: problem))
        await #expect(throws: LarderError.self) { try await first.accessToken() }
        #expect(first.state == .expired(userID: "user_1"))
    }

    @Test func `tokens that cannot be stored are not used, and stored later without another renewal`()
        async throws
    {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let session = try await BearerSession(
            try LarderCache(configuration),
            HTTPSource("http://server", transport: server.transport()),
            .demo
        )
        try await session.signIn(handle: "ana", password: "larder")
        scene.clock.advance(by: .seconds(3_600))
        killable.fail(.full, untilHealed: true)
        let error = await #expect(throws: LarderError.self) { try await session.accessToken() }
        #expect(error?.code == .storage)
        #expect(session.state == .signedIn(userID: "user_1"))
        killable.heal()
        #expect(try await session.accessToken() == "access-2")
        #expect(server.renewals == ["refresh-1"])
        // As read by a new process.
        let store = try killable.reopen()
        configuration.storage = .store(store)
        let next = try await BearerSession(
            try LarderCache(configuration),
            HTTPSource("http://server", transport: server.transport()),
            .demo
        )
        #expect(try await next.accessToken() == "access-2")
    }
}

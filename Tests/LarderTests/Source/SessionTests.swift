import Larder
import LarderHTTP
import LarderModels
import LarderTesting
import LarderTime
import TestSupport
import Testing

@Suite("The session, while its renewal is on its way", .oneMinute)
struct SessionTests {
    private let scene = CacheScene()
    private let gate = TransportGate()

    /// A session whose tokens are outdated, before a server that takes its time to renew them.
    private func outdated(isRefused: Bool) async throws -> (Session, ScriptedTransport) {
        let gate = gate
        let transport = ScriptedTransport { request, _ throws(TransportError) in
            let fields: Fields = [.contentType: "application/json"]
            if request.method == .delete { return .text("", status: .noContent) }
            guard request.url.hasSuffix("/refresh") else { return .text(Self.grant("old"), fields: fields) }
            return isRefused
                ? .text(#"{"type":"/problems/invalid-refresh-token"}"#, status: .unauthorized, fields: fields).held(
                    by: gate
                )
                : .text(Self.grant("new"), fields: fields).held(by: gate)
        }
        let session = try Session(try scene.cache(), "http://server", transport)
        try await session.signIn(handle: "ana", password: "larder")
        scene.clock.advance(by: .seconds(3_600))
        return (session, transport)
    }

    @Test(arguments: [true, false])
    func `whoever signs in while old tokens are renewed stays signed in`(isRefused: Bool) async throws {
        let (session, _) = try await outdated(isRefused: isRefused)
        let asking = Task { try await session.accessToken() }
        await gate.waitForHeld()
        try session.use(token: "another", userID: "user_2")
        gate.open()
        #expect(try await asking.value == "another")
        #expect(session.state == .signedIn(userID: "user_2"))
        #expect(try await session.accessToken() == "another")
    }

    @Test(arguments: [true, false])
    func `whoever signs out while tokens are renewed stays signed out`(isRefused: Bool) async throws {
        let (session, _) = try await outdated(isRefused: isRefused)
        let asking = Task { try? await session.accessToken() }
        await gate.waitForHeld()
        await session.signOut()
        gate.open()
        _ = await asking.value
        #expect(session.state == .signedOut)
    }

    @Test func `whoever waits for a renewal can be cancelled, and the renewal is not`() async throws {
        let (session, transport) = try await outdated(isRefused: false)
        let asking = Task { try await session.accessToken() }
        await gate.waitForHeld()
        asking.cancel()
        // The server has not answered yet.
        let error = await #expect(throws: LarderError.self) { try await asking.value }
        #expect(error?.code == .cancelled)
        let second = Task { try await session.accessToken() }
        gate.open()
        #expect(try await second.value == "new")
        #expect(transport.requests.count { $0.url.hasSuffix("/refresh") } == 1)
    }

    @Test func `nobody is signed in whose signing in has failed, wherever the store fails`() async throws {
        let fields: Fields = [.contentType: "application/json"]
        var isSignedIn = false
        for step in 1...20 {
            let scene = CacheScene()
            let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
            var configuration = scene.configuration()
            configuration.store = try killable.store()
            let cache = try LarderCache(configuration)
            let transport = ScriptedTransport { _, _ in .text(Self.grant("new"), fields: fields) }
            let session = try Session(cache, "http://server", transport)
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

    private static func grant(_ token: String) -> String {
        """
        {"accessToken": "\(token)", "refreshToken": "again", "expiresIn": 60, "tokenType": "Bearer", "user": {"id": "user_1",
        "handle": "ana", "displayName": "Ana", "bio": "", "location": "", "avatarId": null, "version": 1,
        "followerCount": 0, "followingCount": 0, "postCount": 0, "createdAt": "2026-01-01T00:00:00Z",
        "joinedAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}}
        """
    }
}

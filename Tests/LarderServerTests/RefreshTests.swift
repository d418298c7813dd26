import LarderCoding
import LarderSQLite
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

/// Repeated use of one refresh token (RFC 9700 §4.14).
@Suite("Repeated token renewals", .oneMinute)
struct RefreshTests {
    private struct Grant {
        let access: String
        let refresh: String

        init(_ reply: RawReply) throws {
            access = try #require(try reply.json["accessToken"]?.string)
            refresh = try #require(try reply.json["refreshToken"]?.string)
        }
    }

    private func signIn(_ scene: Scene, as handle: String = "ana") async throws -> Grant {
        try Grant(
            try await scene.ask("POST", "/v1/sessions", as: nil, "{\"handle\":\"\(handle)\",\"password\":\"larder\"}")
        )
    }

    private func renew(_ scene: Scene, _ token: String) async throws -> RawReply {
        try await scene.ask("POST", "/v1/sessions/refresh", as: nil, "{\"refreshToken\":\"\(token)\"}")
    }

    private func status(_ scene: Scene, _ access: String) async throws -> Int {
        try await scene.ask("GET", "/v1/me", as: access).status
    }

    @Test func `a renewal whose reply was lost is repeated within the grace period`() async throws {
        let scene = try Scene()
        let first = try await signIn(scene)
        let lost = try Grant(try await renew(scene, first.refresh))
        scene.clock.advance(by: .milliseconds(29_999))
        let repeated = try Grant(try await renew(scene, first.refresh))
        #expect(Set([first.refresh, lost.refresh, repeated.refresh]).count == 3)
        #expect(try await status(scene, repeated.access) == 200)
        #expect(try await status(scene, first.access) == 401)
        // The session continues with the received tokens.
        scene.clock.advance(by: .seconds(3_600))
        let next = try Grant(try await renew(scene, repeated.refresh))
        #expect(try await status(scene, next.access) == 200)
    }

    @Test func `several replies in a row may be lost`() async throws {
        let scene = try Scene()
        let first = try await signIn(scene)
        for _ in 0..<4 {
            #expect(try await renew(scene, first.refresh).status == 200)
            scene.clock.advance(by: .seconds(7))
        }
        let arrived = try Grant(try await renew(scene, first.refresh))
        #expect(try await status(scene, arrived.access) == 200)
    }

    @Test func `a repeat after the grace period ends the session for all holders`() async throws {
        let scene = try Scene()
        let first = try await signIn(scene)
        let second = try Grant(try await renew(scene, first.refresh))
        let third = try Grant(try await renew(scene, first.refresh))
        scene.clock.advance(by: .seconds(30))
        #expect(try await renew(scene, first.refresh).problem == "invalid-refresh-token")
        for grant in [second, third] {
            #expect(try await status(scene, grant.access) == 401)
            #expect(try await renew(scene, grant.refresh).status == 401)
        }
    }

    @Test func `an older ancestor ends the session, also within the grace period`() async throws {
        let scene = try Scene()
        let first = try await signIn(scene)
        let second = try Grant(try await renew(scene, first.refresh))
        let third = try Grant(try await renew(scene, second.refresh))
        #expect(try await status(scene, third.access) == 200)
        #expect(try await renew(scene, first.refresh).problem == "invalid-refresh-token")
        #expect(try await status(scene, third.access) == 401)
        #expect(try await renew(scene, third.refresh).status == 401)
    }

    @Test func `two processes that renew with one token both stay signed in`() async throws {
        let scene = try Scene()
        let shared = try await signIn(scene)
        var (one, other) = (
            try Grant(try await renew(scene, shared.refresh)), try Grant(try await renew(scene, shared.refresh))
        )
        for _ in 0..<3 {
            #expect(try await status(scene, one.access) == 200)
            #expect(try await status(scene, other.access) == 200)
            scene.clock.advance(by: .seconds(3_600))
            one = try Grant(try await renew(scene, one.refresh))
            scene.clock.advance(by: .seconds(600))
            other = try Grant(try await renew(scene, other.refresh))
        }
        // Both grants belong to one session: signing out in one ends both.
        #expect(try await scene.ask("DELETE", "/v1/sessions/current", as: one.access).status == 204)
        #expect(try await status(scene, other.access) == 401)
        #expect(try await renew(scene, other.refresh).status == 401)
    }

    @Test func `the grace period and its end survive a restart`() async throws {
        let directory = try ScratchDirectory()
        func scene(at seconds: Int64) throws -> Scene {
            let scene = try Scene { $0.databasePath = directory.path + "/world.sqlite" }
            scene.clock.advance(by: .seconds(seconds))
            return scene
        }
        var scene1 = try scene(at: 0)
        let first = try await signIn(scene1)
        _ = try await renew(scene1, first.refresh)
        await scene1.backend.stop()
        scene1 = try scene(at: 20)
        let repeated = try Grant(try await renew(scene1, first.refresh))
        await scene1.backend.stop()
        scene1 = try scene(at: 40)
        #expect(try await status(scene1, repeated.access) == 200)
        #expect(try await renew(scene1, first.refresh).problem == "invalid-refresh-token")
        #expect(try await status(scene1, repeated.access) == 401)
        await scene1.backend.stop()
    }
}

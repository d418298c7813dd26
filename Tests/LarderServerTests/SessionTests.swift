import LarderCoding
import LarderSQLite
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Sessions and limits", .oneMinute)
struct SessionTests {
    @Test func `an access token expires with the clock and is exchanged once`() async throws {
        let scene = try Scene()
        let session = try await scene.ask("POST", "/v1/sessions", as: nil, #"{"handle":"ana","password":"larder"}"#)
        #expect(session.status == 201)
        let access = try #require(try session.json["accessToken"]?.string)
        let refresh = try #require(try session.json["refreshToken"]?.string)
        #expect(try await scene.ask("GET", "/v1/me", as: access).status == 200)
        scene.clock.advance(by: .seconds(3_600))
        let expired = try await scene.ask("GET", "/v1/me", as: access)
        #expect(expired.problem == "token-expired")
        #expect(expired.field("WWW-Authenticate")?.contains("invalid_token") == true)
        let body = #"{"refreshToken":"\#(refresh)"}"#
        let renewed = try #require(
            try await scene.ask("POST", "/v1/sessions/refresh", as: nil, body).json["accessToken"]?.string
        )
        #expect(try await scene.ask("GET", "/v1/me", as: renewed).status == 200)
        // An exchanged token that comes again after the grace period ends the session for both of its holders.
        scene.clock.advance(by: .seconds(30))
        #expect(try await scene.ask("POST", "/v1/sessions/refresh", as: nil, body).problem == "invalid-refresh-token")
        #expect(try await scene.ask("GET", "/v1/me", as: renewed).problem == "invalid-token")
    }

    @Test func `a session that ends by token reuse closes its live channels`() async throws {
        let scene = try Scene()
        let body = #"{"handle":"ana","password":"larder"}"#
        let session = try await scene.ask("POST", "/v1/sessions", as: nil, body).json
        let access = try #require(session["accessToken"]?.string)
        let refresh = #"{"refreshToken":"\#(session["refreshToken"]?.string ?? "")"}"#
        let stream = try RawClient(port: scene.backend.port)
        try stream.send("GET /v1/live/events HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(access)\r\n\r\n")
        _ = try await stream.read(until: "event: hello")
        await reached { scene.backend.plane.worlds.main.live.readerCount > 0 }
        #expect(try await scene.ask("POST", "/v1/sessions/refresh", as: nil, refresh).status == 200)
        scene.clock.advance(by: .seconds(30))
        #expect(try await scene.ask("POST", "/v1/sessions/refresh", as: nil, refresh).status == 401)
        _ = try await stream.read(until: "\r\n0\r\n\r\n")
    }

    @Test func `a live channel that waited while its session ended is closed`() async throws {
        let scene = try Scene()
        let body = #"{"handle":"ana","password":"larder"}"#
        let session = try await scene.ask("POST", "/v1/sessions", as: nil, body).json
        let access = try #require(session["accessToken"]?.string)
        let main = scene.backend.main
        try main.set(Gate(id: "g", when: FaultMatch("GET", "/v1/live/events"), stage: .reply))
        let stream = try RawClient(port: scene.backend.port)
        try stream.send("GET /v1/live/events HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer \(access)\r\n\r\n")
        await reached { !main.held.isEmpty }
        #expect(try await scene.ask("DELETE", "/v1/sessions/current", as: access).status == 204)
        main.releaseAll()
        _ = try await stream.read(until: "\r\n0\r\n\r\n")
    }

    @Test func `a sign-in deletes expired sessions`() async throws {
        let scene = try Scene()
        let body = #"{"handle":"ana","password":"larder"}"#
        let old = try await scene.ask("POST", "/v1/sessions", as: nil, body).json
        let count = {
            try scene.backend.plane.worlds.main.read { store in
                let statement = try store.database.prepare("SELECT count(*) FROM sessions")
                defer { statement.reset() }
                return try statement.step() ? statement.int64(0) : -1
            }
        }
        let before = try count()
        #expect(try await scene.ask("POST", "/v1/sessions", as: nil, body).status == 201)
        #expect(try count() == before + 1)
        scene.clock.advance(by: scene.backend.plane.worlds.main.settings.refreshTokenLifetime)
        let new = try await scene.ask("POST", "/v1/sessions", as: nil, body).json
        #expect(try count() == before)
        #expect(try await scene.ask("GET", "/v1/me", as: new["accessToken"]?.string).status == 200)
        // Developer tokens stay.
        #expect(try await scene.ask("GET", "/v1/me").status == 200)
        let refresh = #"{"refreshToken":"\#(old["refreshToken"]?.string ?? "")"}"#
        #expect(try await scene.ask("POST", "/v1/sessions/refresh", as: nil, refresh).status == 401)
    }

    @Test func `signing out ends the session at once`() async throws {
        let scene = try Scene()
        let session = try await scene.ask("POST", "/v1/sessions", as: nil, #"{"handle":"ana","password":"larder"}"#)
        let access = try #require(try session.json["accessToken"]?.string)
        #expect(try await scene.ask("DELETE", "/v1/sessions/current", as: access).status == 204)
        #expect(try await scene.ask("GET", "/v1/me", as: access).problem == "invalid-token")
        let wrong = try await scene.ask("POST", "/v1/sessions", as: nil, #"{"handle":"ana","password":"no"}"#)
        #expect(wrong.problem == "invalid-credentials")
    }

    @Test func `a caller beyond the quota gets 429 with the time to wait`() async throws {
        let scene = try Scene { $0.settings.rateLimit = 3 }
        for left in [2, 1, 0] {
            let reply = try await scene.ask("GET", "/v1/me")
            #expect(reply.status == 200)
            #expect(reply.field("RateLimit") == "\"default\";r=\(left);t=60")
            #expect(reply.field("RateLimit-Policy") == "\"default\";q=3;w=60")
        }
        scene.clock.advance(by: .seconds(20))
        let rejected = try await scene.ask("GET", "/v1/me")
        #expect(rejected.status == 429)
        #expect(rejected.field("Retry-After") == "40")
        #expect(try await scene.ask("GET", "/v1/me", as: "person2").status == 200)
        scene.clock.advance(by: .seconds(40))
        #expect(try await scene.ask("GET", "/v1/me").status == 200)
    }

    @Test func `pages of any origin may read replies, and preflights allow the requested fields`() async throws {
        let scene = try Scene()
        let reply = try await scene.ask("GET", "/v1/nothing", ["Origin": "https://app.example"])
        #expect(reply.status == 404)
        #expect(reply.field("Access-Control-Allow-Origin") == "https://app.example")
        #expect(reply.field("Access-Control-Allow-Credentials") == "true")
        #expect(reply.field("Access-Control-Expose-Headers")?.contains("ETag") == true)
        let preflight = try await scene.ask(
            "OPTIONS",
            "/v1/posts/post_1",
            [
                "Origin": "https://app.example", "Access-Control-Request-Headers": "X-App-Version, traceparent",
            ]
        )
        #expect(preflight.status == 204)
        #expect(preflight.field("Access-Control-Allow-Methods") == "DELETE, GET, HEAD, OPTIONS, PATCH")
        #expect(preflight.field("Access-Control-Allow-Headers") == "X-App-Version, traceparent")
    }

    @Test func `a message sent twice with one client ID exists once`() async throws {
        let scene = try Scene()
        let conversation = try #require(
            try await scene.ask("GET", "/v1/conversations").json["items"]?[0]?["id"]?.string
        )
        let path = "/v1/conversations/\(conversation)/messages"
        let first = try await scene.ask("POST", path, #"{"text":"hi","clientId":"c1"}"#)
        let second = try await scene.ask("POST", path, #"{"text":"hi","clientId":"c1"}"#)
        #expect(first.status == 201 && second.status == 200)
        #expect(try first.json["id"] == second.json["id"])
        let message = try #require(try first.json["id"]?.string)
        #expect(try await scene.ask("DELETE", "/v1/messages/\(message)").status == 204)
        #expect(try await scene.ask("GET", "/v1/messages/\(message)").status == 404)
        let newest = try await scene.ask("GET", path + "?limit=1").json["items"]?[0]?["id"]
        #expect(try await scene.ask("GET", "/v1/conversations/\(conversation)").json["lastMessageId"] == newest)
    }
}

import LarderCoding
import LarderEngine
import LarderHTTP
import LarderServer
import LarderTime
import TestSupport
import Testing

/// The access of pages of other origins (Fetch) to the API, to fault replies and to the control plane.
@Suite("Pages of other origins", .oneMinute)
struct CrossOriginTests {
    private static let page = "http://localhost:3000"

    private func preflight(
        _ stage: Stage,
        _ target: String,
        _ method: String = "GET",
        origin: String = page,
        headers: String = "authorization"
    ) async throws -> RawReply {
        try await stage.ask(
            "OPTIONS",
            target,
            as: nil,
            fields: [
                "Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers,
            ]
        )
    }

    private func ask(
        _ stage: Stage,
        _ method: String,
        _ target: String,
        _ body: String? = nil,
        as handle: String? = "ana",
        origin: String = page,
        _ more: [String: String] = [:]
    ) async throws -> RawReply {
        try await stage.ask(
            method,
            target,
            body,
            as: handle,
            fields: more.merging(["Origin": origin]) { $1 }
        )
    }

    @Test func `a preflight passes although its request meets a fault, a gate or a limit`() async throws {
        let stage = try Stage { $0.rateLimit = 2 }
        var twice = Fault.Occurrence()
        twice.count = 1
        try stage.world.set(
            Fault(id: "first", .respond(CannedReply(status: 503)), when: FaultMatch(nil, "/v1/me"), occurrence: twice),
            Fault(id: "head", .reset, when: FaultMatch(nil, "/v1/posts/**"), stage: .beforeRead)
        )
        try stage.world.set(Gate(id: "g", when: FaultMatch(nil, "/v1/accounts")))
        for target in ["/v1/me", "/v1/me", "/v1/me", "/v1/posts/post_1", "/v1/accounts"] {
            let reply = try await preflight(stage, target)
            #expect(reply.status == 204 && reply.field("Access-Control-Allow-Origin") == Self.page, "\(target)")
        }
        #expect(stage.world.faults.map(\.applications) == [0, 0])
        #expect(stage.world.held.isEmpty)
        #expect(try await ask(stage, "GET", "/v1/me").status == 503)
        #expect(try await ask(stage, "GET", "/v1/me").status == 200)
    }

    @Test func `a fault for OPTIONS applies to preflights, and any fault applies to other OPTIONS requests`()
        async throws
    {
        let stage = try Stage()
        try stage.world.set(
            Fault(id: "options", .respond(CannedReply(status: 503)), when: FaultMatch("OPTIONS", "/v1/me")),
            Fault(id: "any", .respond(CannedReply(status: 500)), when: FaultMatch(nil, "/v1/feed"))
        )
        #expect(try await preflight(stage, "/v1/me").status == 503)
        #expect(try await preflight(stage, "/v1/feed").status == 204)
        #expect(try await stage.ask("OPTIONS", "/v1/feed", as: nil).status == 500)
    }

    @Test(arguments: ["overloaded", "captive-portal", "offline"])
    func `a journey does not affect preflights`(name: String) async throws {
        let stage = try Stage()
        try stage.world.set(try #require(Journey(rawValue: name)))
        for _ in 0..<6 { #expect(try await preflight(stage, "/v1/me").status == 204) }
    }

    @Test func `a stub for an unknown path answers its preflight`() async throws {
        let stage = try Stage()
        try stage.world.set(
            Fault(id: "stub", .respond(CannedReply(status: 200)), when: FaultMatch("PUT", "/api/recipes/*")),
            Fault(id: "other", .respond(CannedReply(status: 200)), when: FaultMatch("PUT", "/v1/feed"))
        )
        for target in ["/api/recipes/7", "/v1/feed"] {
            let reply = try await preflight(stage, target, "PUT", headers: "authorization, x-trace")
            #expect(reply.status == 204 && reply.field("Access-Control-Allow-Origin") == Self.page, "\(target)")
            #expect(reply.field("Access-Control-Allow-Methods")?.contains("PUT") == true, "\(target)")
            #expect(reply.field("Access-Control-Allow-Headers")?.contains("x-trace") == true, "\(target)")
        }
        #expect(try await preflight(stage, "/api/recipes/7", "DELETE").status == 404)
        #expect(try await preflight(stage, "/api/others/7", "PUT").status == 404)
    }

    @Test func `a page can read the reply of a fault with its fields`() async throws {
        let stage = try Stage()
        var canned = CannedReply(status: 503)
        canned.retryAfter = .seconds(7)
        canned.headers = ["X-Total": "3", "ETag": "\"a\""]
        try stage.world.set(
            Fault(id: "busy", .respond(canned), when: FaultMatch("GET", "/v1/feed")),
            Fault(id: "expired", .expireToken, when: FaultMatch("GET", "/v1/me"))
        )
        let busy = try await ask(stage, "GET", "/v1/feed")
        #expect(busy.status == 503 && busy.field("Access-Control-Allow-Origin") == Self.page)
        let exposed = (busy.field("Access-Control-Expose-Headers") ?? "").split(separator: ",").map {
            $0.drop { $0 == " " }.lowercased()
        }
        #expect(exposed.contains("retry-after") && exposed.contains("x-total"))
        #expect(exposed.count { $0 == "etag" } == 1)
        let expired = try await ask(stage, "GET", "/v1/me")
        #expect(expired.status == 401 && expired.field("Access-Control-Allow-Origin") == Self.page)
        #expect(expired.field("Access-Control-Expose-Headers")?.contains("WWW-Authenticate") == true)
        let unknown = try await ask(stage, "GET", "/w/nowhere/v1/feed")
        #expect(unknown.status == 404 && unknown.field("Access-Control-Allow-Origin") == Self.page)
    }

    @Test func `a page can read the rejection of a key in flight`() async throws {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("POST", "/v1/posts"), stage: .reply))
        let fields = ["Idempotency-Key": "k", "Origin": Self.page]
        let first = try stage.send("POST", "/v1/posts", #"{"text":"x"}"#, fields: fields)
        await reached { !stage.world.held.isEmpty }
        let second = try await stage.ask("POST", "/v1/posts", #"{"text":"x"}"#, fields: fields)
        #expect(second.status == 409 && second.field("Access-Control-Allow-Origin") == Self.page)
        #expect(second.field("Access-Control-Expose-Headers")?.contains("Retry-After") == true)
        stage.world.releaseAll()
        #expect(try await first.reply().status == 201)
    }

    @Test func `with the token a loopback page may use the control plane, and a foreign page reads nothing`()
        async throws
    {
        let stage = try Stage { $0.controlToken = "sesame" }
        let token = ["Authorization": "Bearer sesame"]
        for origin in ["http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:80", "https://localhost"] {
            let allowed = try await preflight(stage, "/_larder/faults", "PUT", origin: origin)
            #expect(allowed.status == 204 && allowed.field("Access-Control-Allow-Origin") == origin, "\(origin)")
            #expect(allowed.field("Access-Control-Allow-Methods")?.contains("PUT") == true)
            #expect(allowed.field("Access-Control-Allow-Headers")?.lowercased().contains("authorization") == true)
            let reply = try await ask(stage, "GET", "/_larder/conduct", as: nil, origin: origin, token)
            #expect(reply.status == 200 && reply.field("Access-Control-Allow-Origin") == origin)
            #expect(reply.field("Vary")?.contains("Origin") == true)
            let rejected = try await ask(stage, "GET", "/_larder/faults", as: nil, origin: origin)
            #expect(rejected.status == 401 && rejected.field("Access-Control-Allow-Origin") == origin)
        }
        for origin in ["http://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.+1", "file://"] {
            let reply = try await preflight(stage, "/_larder/faults", "PUT", origin: origin)
            #expect(reply.status == 401 && reply.field("Access-Control-Allow-Origin") == nil, "\(origin)")
            let read = try await ask(stage, "GET", "/_larder/faults", as: nil, origin: origin, token)
            #expect(read.field("Access-Control-Allow-Origin") == nil, "\(origin)")
        }
    }

    @Test func `without a token a page of another port needs --control-origin`() async throws {
        let stage = try Stage { $0.controlOrigins = ["http://localhost:3000", "https://app.example"] }
        for origin in ["http://localhost:3000", "https://app.example"] {
            let allowed = try await preflight(stage, "/_larder/faults", "POST", origin: origin)
            #expect(allowed.status == 204 && allowed.field("Access-Control-Allow-Origin") == origin)
            let fields = ["Sec-Fetch-Site": "cross-site"]
            let fault = #"{"action":{"type":"reset"}}"#
            let set = try await ask(stage, "POST", "/_larder/faults", fault, as: nil, origin: origin, fields)
            #expect(set.status == 201 && set.field("Access-Control-Allow-Origin") == origin, "\(set.text)")
        }
        for origin in ["http://localhost:3001", "http://app.example", "http://evil.example", "null"] {
            let reply = try await preflight(stage, "/_larder/faults", "POST", origin: origin)
            #expect(reply.status == 403 && reply.field("Access-Control-Allow-Origin") == nil, "\(origin)")
            let read = try await ask(stage, "GET", "/_larder/faults", as: nil, origin: origin)
            #expect(read.status == 403 && read.field("Access-Control-Allow-Origin") == nil, "\(origin)")
        }
        // A rebound host name is rejected for any origin.
        let client = try stage.connect()
        try client.send("GET /_larder HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://localhost:3000\r\n\r\n")
        #expect(try await client.reply().status == 403)
    }

    @Test func `a page can read a control reply that is completed later`() async throws {
        let stage = try Stage {
            $0.controlToken = "sesame"
            $0.server.loops = 2
        }
        let fields = ["Authorization": "Bearer sesame"]
        let reply = try await ask(stage, "GET", "/_larder/journal", as: nil, fields)
        #expect(reply.status == 200 && reply.field("Access-Control-Allow-Origin") == Self.page)
        let wait = #"{"quietSeconds":0,"clock":"real"}"#
        let waited = try await ask(stage, "POST", "/_larder/wait", wait, as: nil, fields)
        #expect(waited.status == 200 && waited.field("Access-Control-Allow-Origin") == Self.page, "\(waited.text)")
    }

    @Test func `a page can read the reply of a long poll that has waited, with the limit of requests`() async throws {
        let stage = try Stage { $0.rateLimit = 100 }
        let now = try #require(try await stage.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string)
        let poll = try stage.send("GET", "/v1/changes?wait=30&since=\(now)", fields: ["Origin": Self.page])
        await reached { stage.world.clock.untilNextTimer != nil }
        stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"news"}"#))
        let reply = try await poll.reply()
        #expect(reply.status == 200 && reply.field("Access-Control-Allow-Origin") == Self.page)
        #expect(reply.field("Access-Control-Expose-Headers")?.contains("RateLimit") == true)
        #expect(reply.field("RateLimit")?.contains(";r=98;") == true)
    }

    @Test func `a page can read the problems of the proxy, and of a recording`() async throws {
        let port = try ClosedPort()
        let url = try #require(HTTPURL("http://127.0.0.1:\(port.port)"))
        let proxy = try Stage { $0.origin = .server(url) }
        let unreachable = try await ask(proxy, "GET", "/v1/feed")
        #expect(unreachable.status == 502 && unreachable.field("Access-Control-Allow-Origin") == Self.page)
        let client = try proxy.connect()
        try client.send("GET / HTTP/1.1\r\nHost: evil.example\r\nOrigin: \(Self.page)\r\n\r\n")
        let rejected = try await client.reply()
        #expect(rejected.problem == "host-rejected" && rejected.field("Access-Control-Allow-Origin") == Self.page)
        await proxy.backend.stop()

        let silent = try RawServer()
        let world = try #require(HTTPURL("http://127.0.0.1:\(silent.port)"))
        let other = try Stage { $0.origin = .server(world) }
        let blue = try other.backend.makeWorld(id: "blue")
        let waiting = try other.send("GET", "/v1/feed", fields: ["Larder-World": "blue", "Origin": Self.page])
        let connection = try await silent.next()
        _ = try await connection.read(until: "\r\n\r\n")
        try blue.destroy()
        let removed = try await waiting.reply()
        #expect(removed.problem == "unknown-world" && removed.field("Access-Control-Allow-Origin") == Self.page)
        await other.backend.stop()

        let entry = #"{"request":{"method":"GET","url":"http://x.test/only"},"response":{"status":204}}"#
        let player = try Stage { $0.origin = .recording(Array("{\"log\":{\"entries\":[\(entry)]}}".utf8)) }
        let missing = try await ask(player, "GET", "/v1/feed")
        #expect(missing.status == 404 && missing.field("Access-Control-Allow-Origin") == Self.page)
    }
}

import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Control requests mean what they say", .oneMinute)
struct ControlMeaningTests {
    private func faults(_ stage: Stage) -> [String] { stage.world.faults.map(\.fault.id) }

    @Test(arguments: [
        (#""removeAll":true,"journey":"offline""#, 0),
        (#""remove":["a"],"faults":[{"id":"a","action":{"type":"reset"}}]"#, 1),
    ])
    func `a step removes before it sets`(_ members: String, _ least: Int) async throws {
        let stage = try Stage()
        try stage.world.set(Fault(id: "a", .close, when: FaultMatch("GET", "/v1/me")))
        #expect(try await stage.ask("POST", "/_larder/script", "{\"steps\":[{\(members)}]}").status == 201)
        #expect(await (try stage.send("GET", "/v1/feed")).readToEnd().bytes.isEmpty)
        #expect(faults(stage).count { $0 == "a" } == least)
    }

    @Test(arguments: [
        ("verify", #"{"expect":[{"match":{"status":[200]},"atLeast":1}]}"#, "/expect/0/match/status"),
        ("verify", #"{"expect":[{"match":{"status":true},"atLeast":1}]}"#, "/expect/0/match/status"),
        ("verify", #"{"expect":[{"match":{"status":200.5},"atLeast":1}]}"#, "/expect/0/match/status"),
        ("verify", #"{"expect":[{"exactly":1,"atMost":3}]}"#, "/expect/0/exactly"),
        (
            "faults", #"{"faults":[{"id":"a","action":{"type":"reset"}},{"id":"a","action":{"type":"close"}}]}"#,
            "/faults/1/id"
        ),
        ("faults", #"{"action":{"type":"contentType","value":"text/plain\r\nX-A: 1"}}"#, "/action/value"),
        ("script", #"{"steps":[{"remove":["x",1]}]}"#, "/steps/0/remove/1"),
    ])
    func `what would be read otherwise is rejected`(_ function: String, _ body: String, _ pointer: String) async throws
    {
        let stage = try Stage()
        let reply = try await stage.ask("POST", "/_larder/" + function, body)
        #expect(reply.status == 422, "\(reply.text)")
        let pointers = try (reply.json["errors"]?.array ?? []).map { $0["pointer"]?.string }
        #expect(pointers.contains(pointer), "\(pointers)")
    }

    @Test(arguments: ["faults/50%", "faults/%FF", "faults/a/b", "worlds/blue/%FF"])
    func `a path that does not exist removes nothing`(_ path: String) async throws {
        let stage = try Stage()
        let blue = try stage.backend.makeWorld(id: "blue")
        try stage.world.set(Fault(id: "a", .reset, when: FaultMatch("GET", "/v1/me")))
        #expect([400, 404].contains(try await stage.ask("DELETE", "/_larder/" + path).status))
        #expect(faults(stage) == ["a"])
        #expect(try await stage.ask("GET", "/_larder/worlds/blue").status == 200)
        withExtendedLifetime(blue) {}
    }

    @Test(arguments: [
        ("POST", "reset/blue"), ("POST", "verify/x"), ("GET", "conduct/x"), ("GET", "clock/x"), ("GET", "skew/x"),
        ("GET", "script/x"), ("GET", "drift/x"), ("GET", "dialect/x"), ("GET", "metrics/x"), ("GET", "recording/x"),
        ("GET", "files/x"), ("GET", "openapi.json/x"), ("GET", "journal/1/x"), ("GET", "oracles/ledger/x"),
        ("GET", "journeys/train/x"), ("GET", "held/x"),
    ])
    func `a path below a function that has none is not found`(_ method: String, _ path: String) async throws {
        let stage = try Stage()
        _ = try await stage.ask("GET", "/v1/me")
        let reply = try await stage.ask(method, "/_larder/" + path, method == "POST" ? "{}" : nil)
        #expect([404, 405].contains(reply.status), "\(path): \(reply.text)")
    }

    @Test func `what the journal has dropped is not verified, and the report tells`() async throws {
        let stage = try Stage { $0.journalCapacity = 4 }
        for number in 1...6 { _ = try await stage.ask("GET", "/v1/profiles/user_\(number)") }
        let profiles = JournalFilter("GET", "/v1/profiles/*")
        for expectation in [Expectation.exactly(4, profiles), .atMost(4, profiles), .none(JournalFilter("POST"))] {
            let report = await stage.world.verify(expectation)
            #expect(!report.holds && report.description.contains("#1 to #2"), "\(report)")
        }
        #expect(await stage.world.verify(.atLeast(4, profiles)).holds)
        var late = profiles
        late.after = 2
        #expect(await stage.world.verify(.exactly(4, late)).holds)
        #expect(await !stage.world.verify(.atLeast(1, profiles), noneOther: true).holds)
        let report = try await stage.ask("GET", "/_larder/conduct").json
        #expect(report["dropped"] == .integer(2))
        stage.world.clearJournal()
        #expect(await stage.world.verify(.none(profiles)).holds)
        #expect(try await stage.ask("GET", "/_larder/conduct").json["dropped"] == nil)
    }

    @Test func `a body that the journal has not kept is told`() async throws {
        let stage = try Stage()
        let body = #"{"text":"\#(String(repeating: "x", count: 9_000))"}"#
        _ = try await stage.ask("POST", "/v1/posts", body)
        var filter = JournalFilter("POST", "/v1/posts")
        filter.match.body = ["/text": "y"]
        let report = await stage.world.verify(.none(filter))
        #expect(!report.holds && report.description.contains("9011 bytes"), "\(report)")
        let missing = await stage.world.verify(.atLeast(1, filter))
        #expect(!missing.holds && missing.description.contains("9011 bytes"), "\(missing)")
        #expect(try await stage.ask("GET", "/_larder/journal/1/curl").text.contains("9011 bytes"))
    }

    @Test func `a reset keeps a recording`() async throws {
        let stage = try Stage()
        #expect(try await stage.ask("POST", "/_larder/recording", #"{"record":true}"#).status == 201)
        for _ in 0..<2 {
            _ = try await stage.ask("GET", "/v1/me")
            #expect(try await stage.ask("POST", "/_larder/reset").status == 204)
        }
        let saved = try await stage.ask("GET", "/_larder/recording")
        #expect(saved.status == 200)
        #expect(try saved.json.value(at: "/log/entries")?.array?.count == 2)
    }

    @Test func `a client is shown in the world that it has connected to`() async throws {
        let stage = try Stage()
        let worlds = try [stage.backend.makeWorld(id: "blue"), stage.backend.makeWorld(id: "green")]
        let upgrade = [
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        ]
        let client = try stage.send("GET", "/w/blue/_larder/clients/connect", fields: upgrade)
        _ = try await client.read(until: "\r\n\r\n")
        for world in ["/w/green", ""] {
            #expect(try await stage.ask("GET", world + "/_larder/clients").json["items"]?.array?.isEmpty ?? false)
            #expect(try await stage.ask("POST", world + "/_larder/clients/1/offline").status == 404)
        }
        let asked = try stage.send("POST", "/w/blue/_larder/clients/1/offline")
        _ = try await client.read(until: "offline")
        withExtendedLifetime((asked, worlds)) {}
    }

    @Test func `an actor is listed with the fields of its acts`() async throws {
        let stage = try Stage()
        var act = ScriptedAction("GET", "/v1/me", as: "ana")
        act.headers = ["X-A": "1"]
        try stage.world.set(ScriptedActor([act], when: FaultMatch("GET", "/v1/feed")))
        let listed = try await stage.ask("GET", "/_larder/actors").json["items"]?[0]?["acts"]?[0]
        #expect(listed?["headers"]?["X-A"] == .string("1"))
    }
}

import LarderCoding
import LarderServer
import TestSupport
import Testing

@Suite("Faults, gates and scripts that may be mistaken", .oneMinute)
struct MistakenFaultTests {
    @Test(arguments: [
        (#"{"host":"*"}"#, "`host` is no pattern: '*'"), (#"{"host":"*.localhost"}"#, "is no pattern"),
        (#"{"host":"localhost:29400"}"#, "`host` has no port: use 'localhost'"),
        (#"{"path":"/w/iso/v1/feed"}"#, "use '/v1/feed' in the world that it names"),
        (#"{"path":"/v1/feed?limit=1"}"#, "use `query` and '/v1/feed'"),
    ])
    func `a match that no request can have is reported`(_ match: String, _ reason: String) async throws {
        let stage = try Stage()
        let fault = try await stage.ask("POST", "/_larder/faults", #"{"match":\#(match),"action":{"type":"reset"}}"#)
        #expect(try fault.json["warnings"]?[0]?["neverMatches"]?.string?.contains(reason) ?? false, "\(fault.text)")
        for (name, body) in [
            ("gates", #"{"match":\#(match)}"#),
            ("actors", #"{"match":\#(match),"acts":[{"method":"GET","path":"/v1/feed"}]}"#),
        ] {
            let reply = try await stage.ask("POST", "/_larder/" + name, body)
            #expect(try reply.json["warnings"]?[0]?.string?.contains(reason) ?? false, "\(reply.text)")
        }
    }

    @Test func `a gate for a path that is not served is reported, and one that does not exist is not released`()
        async throws
    {
        let stage = try Stage()
        let gate = try await stage.ask("POST", "/_larder/gates", #"{"id":"g","match":{"path":"/v1/feet"}}"#)
        #expect(try gate.json["warnings"]?[0]?.string?.contains("/v1/feed") ?? false, "\(gate.text)")
        #expect(try await stage.ask("POST", "/_larder/gates/g/release").text == #"{"released":0}"#)
        let missing = try await stage.ask("POST", "/_larder/gates/nope/release")
        #expect(missing.status == 404 && missing.text.contains("Existing gates: g."), "\(missing.text)")
    }

    @Test func `a body that is no text is sent as JSON`() async throws {
        let stage = try Stage()
        let fault = #"{"match":{"path":"/stub"},"action":{"type":"respond","status":200,"body":{"a":[1,true]}}}"#
        #expect(try await stage.ask("POST", "/_larder/faults", fault).status == 201)
        let reply = try await stage.ask("GET", "/stub")
        #expect(reply.text == #"{"a":[1,true]}"# && reply.field("Content-Type") == "application/json")
    }

    @Test func `a script that removes a fault which does not exist is rejected`() async throws {
        let stage = try Stage()
        let fault = #"{"id":"busy","action":{"type":"reset"},"match":{"path":"/v1/me"}}"#
        func script(_ name: String) -> String {
            #"{"steps":[{"faults":[\#(fault)]},{"atSeconds":30,"remove":["\#(name)"]}]}"#
        }
        let wrong = try await stage.ask("POST", "/_larder/script", script("busi"))
        #expect(wrong.status == 422 && wrong.text.contains("/steps/1/remove/0"), "\(wrong.text)")
        #expect(wrong.text.contains("did you mean 'busy'?") && stage.world.faults.isEmpty)
        #expect(try await stage.ask("POST", "/_larder/script", script("busy")).status == 201)
    }

    @Test(arguments: [
        ("faults", #"{"action":{"type":"latency","firstByte":"3s"}}"#, "must be a number of seconds, or an object", ""),
        ("held/1/answer", #"{"cut":"rest"}"#, "/cut", "/status"),
    ])
    func `an error says what may be given, and nothing else`(
        _ function: String,
        _ body: String,
        _ part: String,
        _ other: String
    ) async throws {
        let reply = try await Stage().ask("POST", "/_larder/" + function, body)
        #expect(reply.status == 422 && reply.text.contains(part), "\(reply.text)")
        #expect(other.isEmpty || !reply.text.contains(other), "\(reply.text)")
    }

    @Test func `a cut behind the end of a body cuts its last byte`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(.close, when: FaultMatch("GET", "/v1/me"), stage: .body, at: 1_000_000))
        let client = try stage.send("GET", "/v1/me")
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self).lowercased()
        let length = try #require(head.firstMatch(of: /content-length: (\d+)/).flatMap { Int($0.1) })
        #expect(await client.readToEnd().bytes.count == length - 1)
    }
}

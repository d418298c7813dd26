import LarderCoding
import LarderServer
import TestSupport
import Testing

/// Errors and warnings in the replies to fault documents: each error once, and no wrong warning.
@Suite("Fault documents", .oneMinute)
struct FaultDocumentTests {
    private func errors(_ stage: Stage, _ document: String) async throws -> [String] {
        let reply = try await stage.ask("POST", "/_larder/faults", document, as: nil)
        #expect(reply.status == 422, "\(document)")
        return (try reply.json["errors"]?.array ?? []).map {
            "\($0["pointer"]?.string ?? "") \($0["detail"]?.string ?? "")"
        }
    }

    @Test func `a member that is left out has its default`() async throws {
        let stage = try Stage()
        let table = [
            #"{"type":"corrupt","bytes":1}"#, #"{"type":"contentType","value":"text/html; charset=utf-8"}"#,
            #"{"type":"drip","bytes":1,"everySeconds":0.1}"#, #"{"type":"loseReply","by":"reset"}"#,
            #"{"type":"closeListener","seconds":5}"#,
        ]
        for whole in table {
            let type = whole.split(separator: ",")[0]
            let reply = try await stage.ask("POST", "/_larder/faults", #"{"action":\#(type)}}"#, as: nil)
            let action = try reply.json["items"]?.array?.first?["action"]
            #expect(action == (try JSONParser.parse(Array(whole.utf8))), "\(reply.text)")
        }
    }

    @Test func `an invalid member is reported once`() async throws {
        let stage = try Stage()
        let table = [
            (#"{"type":"respond","status":"503"}"#, "/action/status must be an integer"),
            (#"{"type":"respond","status":"503","body":"x","retryAfter":{"seconds":1}}"#, "/action/status must be"),
            (#"{"type":"lag","commits":"1","consistent":true}"#, "/action/commits must be"),
            (#"{"type":"respond","status":99}"#, "/action/status must be an integer"),
            (#"{"type":"respond"}"#, "/action/status must be given"),
            (#"{"type":"respond","status":503,"retryAfter":{"seconds":"x"}}"#, "/action/retryAfter/seconds must be"),
            (#"{"type":"respond","status":503,"retryAfter":{"dateInSeconds":-1}}"#, "/action/retryAfter/dateInSeconds"),
            (#"{"type":7}"#, "/action/type must be a string"),
            (#"{"type":"losereply"}"#, "/action/type did you mean `loseReply`? It must be one of latency, "),
            (#"{}"#, "/action/type is missing"),
            (#"{"type":"latency","body":"x"}"#, "/action/body must be"),
            (#"{"type":"latency","firstByte":{"logNormal":{"median":"x","sigma":1}}}"#, "/median must be"),
            (#"{"type":"bandwidth","upBytesPerSecond":0}"#, "/action/upBytesPerSecond must be"),
            (#"{"type":"truncate","byte":-1}"#, "/action/byte must be"),
            (#"{"type":"lag","commits":"1"}"#, "/action/commits must be"),
            (#"{"type":"validators","mode":"x"}"#, "/action/mode must be one of"),
            (#"{"type":"live","lose":2}"#, "/action/lose must be"),
        ]
        for (action, wanted) in table {
            let found = try await errors(stage, "{\"action\":\(action)}")
            #expect(found.count == 1 && found[0].contains(wanted), "\(action): \(found)")
        }
    }

    @Test(arguments: [
        ("snapshots", #"{"name":7}"#), ("clock/advance", #"{"seconds":"1"}"#), ("clock", #"{"mode":7}"#),
        ("verify", #"{"expect":[{"exactly":"1"}]}"#), ("recording", #"{"record":1}"#),
        ("oracles/converged", #"{"as":"ana","held":7}"#), ("act", #"{"as":"ana","method":7,"path":"/v1/posts"}"#),
        ("worlds", #"{"from":{"generator":7}}"#), ("worlds", #"{"from":{"fork":7}}"#),
    ])
    func `an invalid member of other documents is reported once`(path: String, document: String) async throws {
        let stage = try Stage()
        let method = path == "clock" ? "PUT" : "POST"
        let reply = try await stage.ask(method, "/_larder/" + path, document, as: nil)
        #expect(reply.status == 422, "\(reply.text)")
        let errors = try reply.json["errors"]?.array ?? []
        #expect(errors.count == 1, "\(path) \(document): \(reply.text)")
    }

    @Test(arguments: [
        #"{"match":{"path":"/v1/recipes"},"action":{"type":"respond","status":200}}"#,
        #"{"match":{"method":"GET","path":"/v1/recipes"},"action":{"type":"reset"}}"#,
        #"{"match":{"method":"GET","path":"/v1/recipes"},"stage":"afterCommit","action":{"type":"close"}}"#,
        #"{"match":{"method":"GET","path":"/v1/sessions"},"action":{"type":"close"}}"#,
    ])
    func `a fault that can apply has no warning`(document: String) async throws {
        let stage = try Stage()
        let set = try await stage.ask("POST", "/_larder/faults", document, as: nil)
        let path = document.contains("recipes") ? "/v1/recipes" : "/v1/sessions"
        _ = await (try stage.send("GET", path)).readToEndOrReply()
        let listed = try #require(try await stage.ask("GET", "/_larder/faults", as: nil).json["items"]?[0])
        #expect(listed["applications"] == .integer(1) && listed["neverMatches"] == nil, "\(listed)")
        #expect(!set.text.contains("neverMatches"))
        // A stub is intended for an unknown path; for other faults the path may be misspelled.
        #expect(set.text.contains("notServed") != document.contains("respond"), "\(set.text)")
        #expect((listed["notServed"] == nil) == document.contains("respond"))
    }
}

extension FaultDocumentTests {
    @Test func `a fault for a misspelled path names the nearest route, and so does the 404`() async throws {
        let stage = try Stage()
        let document = #"{"match":{"method":"GET","path":"/v1/fed"},"action":{"type":"reset"}}"#
        let set = try await stage.ask("POST", "/_larder/faults", document, as: nil)
        #expect(set.text.contains("There is no route for GET /v1/fed. Did you mean GET /v1/feed?"), "\(set.text)")
        let outside = #"{"match":{"path":"/users/1"},"action":{"type":"reset"}}"#
        let other = try await stage.ask("POST", "/_larder/faults", outside, as: nil)
        #expect(other.text.contains("There is no route for GET /users/1."), "\(other.text)")
        for path in ["/", "/healthz", "/problems/not-found"] {
            let fault = #"{"match":{"path":"\#(path)"},"action":{"type":"delay","seconds":1}}"#
            #expect(try await !stage.ask("POST", "/_larder/faults", fault, as: nil).text.contains("notServed"))
        }
        _ = try await stage.ask("DELETE", "/_larder/faults", as: nil)
        #expect(try await stage.ask("GET", "/nothing/like/it").text.contains("Did you mean") == false)
        #expect(try await stage.ask("GET", "/v1/fedd").text.contains("Did you mean GET /v1/feed?"))
        // A parameter takes any segment.
        let profile = try await stage.ask("GET", "/v1/profile/somebody-with-a-long-name")
        #expect(profile.text.contains("Did you mean GET /v1/profiles/{id}?"), "\(profile.text)")
    }
}

extension RawClient {
    /// Waits until a reply is there or the connection has ended.
    fileprivate func readToEndOrReply() async {
        // In both cases the exchange is over.
        if (try? await reply()) == nil { _ = await readToEnd() }
    }
}

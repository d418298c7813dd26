import LarderCoding
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Gates, journal, verification and oracles", .oneMinute)
struct JournalTests {
    @Test func `held exchanges are released in any chosen order`() async throws {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/profiles/*"), stage: .reply))
        let first = try stage.send("GET", "/v1/profiles/user_1")
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        let second = try stage.send("GET", "/v1/profiles/user_2")
        #expect(await stage.world.wait(for: .held(2), limit: .seconds(3_600)))
        let third = try stage.send("GET", "/v1/profiles/user_3")
        #expect(await stage.world.wait(for: .held(3), limit: .seconds(3_600)))
        #expect(!first.hasNews && !second.hasNews)
        let held = stage.world.held
        #expect(held.map(\.target) == ["/v1/profiles/user_1", "/v1/profiles/user_2", "/v1/profiles/user_3"])
        stage.world.release(held[1])
        #expect(try await second.reply().json["id"] == .string("user_2"))
        #expect(!first.hasNews)
        stage.world.answer(held[2], with: CannedReply(status: 418))
        #expect(try await third.reply().status == 418)
        stage.world.cut(held[0], by: .reset)
        #expect(await first.readToEnd().ending == .reset)
    }

    @Test func `an exchange that an observer releases at once is journalled with its gate`()
        async throws
    {
        let stage = try Stage()
        try stage.world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/me"), stage: .request))
        let world = stage.world
        let stopObserving = world.world.control.gates.observers.add { _ in world.releaseAll() }
        #expect(try await stage.ask("GET", "/v1/me").status == 200)
        stopObserving()
        let entry = try #require(try await stage.ask("GET", "/_larder/journal", as: nil).json["items"]?.array?.last)
        #expect(entry["gates"] == .array([.string("g")]))
    }

    @Test func `a key in flight is rejected or waited for, depending on the dialect`() async throws {
        let stage = try Stage()
        let body = try await stage.transfer()
        let key = ["Idempotency-Key": "k"]
        try stage.world.set(Gate(id: "g", when: FaultMatch("POST", "/v1/transfers"), stage: .reply, count: 1))
        let first = try stage.send("POST", "/v1/transfers", body, fields: key)
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        let second = try await stage.ask("POST", "/v1/transfers", body, fields: key)
        #expect(second.status == 409 && second.problem == "idempotency-in-progress")
        stage.world.dialect.idempotency = .blocking
        let third = try stage.send("POST", "/v1/transfers", body, fields: key)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        #expect(!third.hasNews)
        stage.world.releaseAll()
        #expect(try await first.reply().field("Idempotent-Replayed") == nil)
        #expect(try await third.reply().field("Idempotent-Replayed") == "true")
        #expect(try stage.world.ledgerFaults() == [])
    }

    @Test func `a key in flight is that of a method and a path, and any method may have one`() async throws {
        let stage = try Stage()
        let key = ["Idempotency-Key": "k"]
        try stage.world.set(Gate(id: "g", when: FaultMatch("PUT", "/v1/posts/*/like"), stage: .reply, count: 1))
        let first = try stage.send("PUT", "/v1/posts/post_1/like", fields: key)
        #expect(await stage.world.wait(for: .held(1), limit: .seconds(3_600)))
        let second = try await stage.ask("PUT", "/v1/posts/post_1/like", fields: key)
        #expect(second.status == 409 && second.problem == "idempotency-in-progress")
        #expect(try await stage.ask("DELETE", "/v1/posts/post_1/like", fields: key).status < 300)
        #expect(try await stage.ask("PUT", "/v1/posts/post_2/like", fields: key).status < 300)
        stage.world.releaseAll()
        #expect(try await first.reply().field("Idempotent-Replayed") == nil)
        let again = try await stage.ask("PUT", "/v1/posts/post_1/like", fields: key)
        #expect(again.field("Idempotent-Replayed") == "true")
    }

    @Test func `an abandoned exchange is in the journal of its world`() async throws {
        let stage = try Stage()
        let blue = try stage.backend.makeWorld(id: "blue")
        for (world, prefix) in [(stage.world, ""), (blue, "/w/blue")] {
            try world.set(Gate(id: "g", when: FaultMatch("GET", "/v1/me"), stage: .reply))
            var client: RawClient? = try stage.send("GET", prefix + "/v1/me", fields: ["Larder-Device": "phone"])
            #expect(await world.wait(for: .held(1), limit: .seconds(3_600)))
            client?.resetsAtEnd()
            client = nil
            #expect(await world.wait(for: .entries(JournalFilter(), count: 1), limit: .seconds(3_600)))
            let entry = try #require(await world.journal().last)
            #expect(entry.outcome == "abandoned" && entry.status == nil && entry.target == "/v1/me")
            #expect(entry.user == "ana")
        }
    }

    @Test func `the journal contains every exchange and no secret`() async throws {
        let stage = try Stage()
        let page = try await stage.ask("GET", "/v1/feed?limit=2", fields: ["Larder-Device": "phone"])
        let tag = try #require(page.field("ETag"))
        _ = try await stage.ask("GET", "/v1/feed?limit=2", fields: ["If-None-Match": tag])
        let password = #"{"handle":"ana","password":"larder"}"#
        _ = try await stage.ask("POST", "/v1/sessions", password, as: nil)
        let reply = try await stage.ask("GET", "/_larder/journal", as: nil)
        #expect(!reply.text.contains("dev-ana") && !reply.text.contains("\"larder\""))
        let items = try #require(try reply.json["items"]?.array)
        #expect(items.map { $0["status"]?.integer } == [200, 304, 201])
        #expect(items[0]["user"] == .string("ana") && items[0]["device"] == .string("phone"))
        #expect(items[1]["validators"]?["ifNoneMatch"] == .string(tag))
        #expect(items[2]["commit"] == .integer(1))
        let filtered = try await stage.ask("GET", "/_larder/journal?status=3xx&method=GET", as: nil).json["items"]?
            .array
        #expect(filtered?.count == 1)
        let curl = try await stage.ask("GET", "/_larder/journal/1/curl", as: nil).text
        #expect(curl.hasPrefix("curl -i") && curl.contains("/v1/feed?limit=2'") && !curl.contains("dev-ana"))
    }

    @Test func `the ring keeps the newest entries for any sizes`() async throws {
        let stage = try Stage { $0.journalCapacity = 32 }
        let client = try stage.connect()
        for index in 0..<400 {
            let padding = String(repeating: "x", count: (index * 7_919) % 9_000)
            let reply = try stage.send("GET", "/v1/posts?n=\(index)", fields: ["X-Pad": padding], on: client)
            _ = try await reply.reply()
        }
        let records = await stage.world.journal()
        #expect(records.count <= 32 && records.count >= 8)
        #expect(records.map(\.number) == Array((400 - records.count + 1)...400))
        #expect(
            records.allSatisfy { $0.target == "/v1/posts?n=\($0.number - 1)" && $0.status == 400 || $0.status == 200 }
        )
    }

    @Test func `a failed verification names the nearest entries and their mismatches`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("GET", "/v1/feed?limit=2")
        _ = try await stage.ask("POST", "/v1/posts", #"{"text":"hello"}"#)
        let good = await stage.world.verify(
            .exactly(1, JournalFilter("GET", "/v1/feed")),
            .atLeast(1, JournalFilter("POST", "/v1/posts", status: "2xx")),
            .none(JournalFilter("DELETE")),
            inOrder: true,
            noneOther: true
        )
        #expect(good.holds, "\(good)")
        var filter = JournalFilter("POST", "/v1/posts", status: "201")
        filter.match.body = ["/text": "goodbye"]
        let bad = await stage.world.verify(.exactly(1, filter))
        #expect(!bad.holds && bad.failures[0].nearest[0].contains("body/text is hello, not goodbye"))
        let order = await stage.world.verify(
            .exactly(1, JournalFilter("POST", "/v1/posts")),
            .exactly(1, JournalFilter("GET", "/v1/feed")),
            inOrder: true
        )
        #expect(!order.holds)
        let http = try await stage.ask(
            "POST",
            "/_larder/verify",
            #"{"expect":[{"match":{"path":"/v1/feed"},"exactly":2}]}"#
        )
        #expect(http.status == 409 && http.problem == "verification-failed")
    }

    @Test func `a wait ends with its condition or its time limit`() async throws {
        let stage = try Stage()
        let waiting = try stage.send(
            "POST",
            "/_larder/wait",
            #"{"entries":{"path":"/v1/feed","count":2},"timeoutSeconds":60}"#
        )
        _ = try await stage.ask("GET", "/v1/feed")
        #expect(!waiting.hasNews)
        _ = try await stage.ask("GET", "/v1/feed")
        #expect(try await waiting.reply().json["seen"] == .integer(2))
        let body = #"{"commits":99,"timeoutSeconds":5,"clock":"world"}"#
        let late = try stage.send("POST", "/_larder/wait", body)
        await reached { stage.world.clock.untilNextTimer != nil }
        stage.world.clock.advance(by: .seconds(5))
        let ended = try await late.reply()
        #expect(ended.status == 409 && ended.problem == "wait-ended")
        let state = #"{"state":{"path":"/v1/profiles/user_1","pointer":"/displayName","equals":"New"}}"#
        let watching = try stage.send("POST", "/_larder/wait", state)
        stage.world.perform(ScriptedAction("PATCH", "/v1/profiles/user_1", as: "ana", body: #"{"displayName":"New"}"#))
        #expect(try await watching.reply().status == 200)
        let task = Task { await stage.world.wait(for: .held(1), limit: .seconds(600)) }
        task.cancel()
        #expect(await task.value == false)
    }

    @Test func `a wait counts each entry once, including evicted ones`() async throws {
        let stage = try Stage { $0.journalCapacity = 8 }
        _ = try await stage.ask("GET", "/v1/feed")
        let body = #"{"entries":{"path":"/v1/feed","count":40},"timeoutSeconds":60,"clock":"world"}"#
        let waiting = try stage.send("POST", "/_larder/wait", body)
        await reached { stage.world.clock.untilNextTimer != nil }
        let client = try stage.connect()
        for _ in 0..<38 { _ = try await stage.send("GET", "/v1/feed", on: client).reply() }
        _ = try await stage.send("GET", "/v1/posts", on: client).reply()
        #expect(!waiting.hasNews)
        _ = try await stage.send("GET", "/v1/feed", on: client).reply()
        stage.world.clock.advance(by: .seconds(60))
        let reply = try await waiting.reply()
        #expect(try reply.status == 200 && reply.json["seen"] == .integer(40), "\(reply.text)")
    }

    @Test func `a wait restarts its count after the journal is cleared`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("GET", "/v1/feed")
        let body = #"{"entries":{"path":"/v1/feed","count":2},"timeoutSeconds":60,"clock":"world"}"#
        let waiting = try stage.send("POST", "/_larder/wait", body)
        await reached { stage.world.clock.untilNextTimer != nil }
        stage.world.clearJournal()
        _ = try await stage.ask("GET", "/v1/feed")
        stage.world.clock.advance(by: .seconds(60))
        let reply = try await waiting.reply()
        #expect(try reply.status == 409 && reply.json["seen"] == .integer(1))
    }

    @Test func `a gate and an actor can be replaced at their maximum number`() throws {
        let gates = GateSet()
        for number in 0..<Gate.countMaximum { _ = try gates.add(Gate(id: "g\(number)", when: FaultMatch())) }
        let replaced = try gates.add(Gate(id: "g7", when: FaultMatch(), stage: .request))
        #expect(gates.gates.count == Gate.countMaximum && gates.gates.contains(replaced))
        #expect(throws: Problem.self) { try gates.add(Gate(id: "one more", when: FaultMatch())) }
        let actors = ScriptedActorSet()
        let act = ScriptedAction("GET", "/v1/feed", as: nil)
        for number in 0..<ScriptedActor.countMaximum {
            _ = try actors.add(ScriptedActor(id: "p\(number)", [act], when: FaultMatch()))
        }
        _ = try actors.add(ScriptedActor(id: "p7", [act], when: FaultMatch(), moment: .after))
        #expect(throws: Problem.self) { try actors.add(ScriptedActor(id: "one more", [act], when: FaultMatch())) }
    }

    @Test func `a generated gate name is unused`() throws {
        let gates = GateSet()
        _ = try gates.add(Gate(id: "gate-1", when: FaultMatch()))
        _ = try gates.add(Gate(when: FaultMatch()))
        #expect(gates.gates.count == 2)
    }

    @Test func `the conduct report finds each kind of violation`() async throws {
        let stage = try Stage()
        let page = try await stage.ask("GET", "/v1/feed?limit=2")
        _ = try await stage.ask("GET", "/v1/feed?limit=2")
        _ = try await stage.ask("GET", "/v1/feed?limit=2", fields: ["If-None-Match": try #require(page.field("ETag"))])
        var once = Fault.Occurrence()
        once.count = 1
        var rejection = CannedReply(status: 503)
        rejection.retryAfter = .seconds(30)
        try stage.world.set(Fault(.respond(rejection), when: FaultMatch("GET", "/v1/posts"), occurrence: once))
        _ = try await stage.ask("GET", "/v1/posts")
        _ = try await stage.ask("GET", "/v1/posts")
        _ = try await stage.ask("POST", "/v1/transfers", try await stage.transfer())
        let report = await stage.world.conduct
        let rules = Set(report.findings.map(\.rule))
        #expect(rules.isSuperset(of: [.downloadedTwice, .refetchedFresh, .retriedTooSoon, .keyMissing]))
        #expect(report.notModified == 1 && report.bytesSaved == page.body.count)
        let text = try await stage.ask("GET", "/_larder/conduct", fields: ["Accept": "text/plain"]).text
        #expect(text.contains("retriedTooSoon: 1"))
    }

    @Test func `an archive has the members that HAR 1.2 requires`() async throws {
        let stage = try Stage()
        _ = try await stage.ask("GET", "/v1/feed?limit=2&x=a%20b")
        let log = try await stage.ask("GET", "/_larder/journal/har", as: nil).json["log"]
        #expect(log?["version"] == .string("1.2"))
        let entry = log?["entries"]?[0]
        #expect(entry?["request"]?["queryString"]?[1]?["value"] == .string("a b"))
        #expect(entry?["response"]?["status"] == .integer(400) || entry?["response"]?["status"] == .integer(200))
        for member in ["startedDateTime", "time", "request", "response", "cache", "timings"] {
            #expect(entry?[member] != nil, "\(member)")
        }
    }

    @Test func `an action whose body is not JSON is rejected by the API`() async throws {
        let stage = try Stage()
        let reply = stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"#))
        #expect(reply.status == 400)
        #expect(String(decoding: reply.body, as: UTF8.self).contains("malformed"), "\(reply)")
    }

    @Test func `a scripted actor acts between a client's pull and its push in every run`() async throws {
        let stage = try Stage()
        let pull = try await stage.ask("GET", "/v1/profiles/user_1")
        try stage.world.set(
            ScriptedActor(
                [ScriptedAction("PATCH", "/v1/profiles/user_1", as: "ana", body: #"{"bio":"from the other device"}"#)],
                when: FaultMatch("PATCH", "/v1/profiles/user_1")
            )
        )
        let tag = try #require(pull.field("ETag"))
        let push = try await stage.ask("PATCH", "/v1/profiles/user_1", #"{"bio":"mine"}"#, fields: ["If-Match": tag])
        #expect(push.status == 412)
        let now = try await stage.ask("GET", "/v1/profiles/user_1")
        #expect(try now.json["bio"] == .string("from the other device"))
        let again = try await stage.ask(
            "PATCH",
            "/v1/profiles/user_1",
            #"{"bio":"mine"}"#,
            fields: ["If-Match": try #require(now.field("ETag"))]
        )
        #expect(again.status == 200)
    }

    @Test func `the change feed repeats, empties and reverses pages, and expires tokens in the middle`() async throws {
        let stage = try Stage()
        func page(_ since: String?) async throws -> RawReply {
            try await stage.ask("GET", "/v1/changes?limit=10" + (since.map { "&since=" + $0 } ?? ""))
        }
        func set(_ page: ChangePageFault, after: Int = 0) throws {
            var once = Fault.Occurrence()
            (once.after, once.count) = (after, 1)
            try stage.world.set(Fault(id: "page", .changes(page), occurrence: once))
        }
        let first = try await page(nil)
        let token = try #require(try first.json["nextToken"]?.string)
        let second = try await page(token).json["items"]
        try set(.repeated)
        let repeated = try await page(token).json
        #expect(repeated["items"] == second && repeated["nextToken"] == .string(token))
        try set(.empty)
        let empty = try await page(token).json
        #expect(empty["items"] == .array([]) && empty["hasMore"] == .bool(true))
        try set(.reversed)
        #expect(try await page(token).json["items"]?.array == second?.array?.reversed())
        try set(.expired, after: 1)
        let last = try #require(try await page(token).json["nextToken"]?.string)
        stage.world.dialect.resync = .uploadDifferences
        let gone = try await page(last)
        #expect(gone.status == 410 && gone.problem == "resync-required")
        #expect(try gone.json["resync"] == .string("upload-differences") && gone.field("Location") == "/v1/changes")
        #expect(try await page(last).status == 200)
    }

    @Test func `a fault of the change feed concerns no other request, and is counted for each device`() async throws {
        let stage = try Stage()
        var once = Fault.Occurrence()
        once.count = 1
        try stage.world.set(Fault(id: "gone", .changes(.expired), occurrence: once))
        let token = try await stage.ask("GET", "/v1/changes?since=now").json["nextToken"]?.string ?? ""
        #expect(try await stage.ask("GET", "/v1/changes?limit=1").status == 200)
        #expect(try await stage.ask("GET", "/v1/feed?since=\(token)").status == 200)
        for device in ["phone", "tablet"] {
            for status in [410, 200] {
                let fields = ["Larder-Device": device]
                let reply = try await stage.ask("GET", "/v1/changes?since=\(token)", fields: fields)
                #expect(reply.status == status, "\(device)")
            }
        }
        let applied = await stage.world.journal().filter { $0.faults == ["gone"] }
        #expect(applied.map(\.status) == [410, 410] && stage.world.faults[0].applications == 2)
    }

    @Test func `a reader that has not read the forgotten tombstones must begin anew, and another one goes on`()
        async throws
    {
        let stage = try Stage()
        func token(_ since: String) async throws -> String {
            try await stage.ask("GET", "/v1/changes?since=\(since)").json["nextToken"]?.string ?? ""
        }
        let early = try await token("now")
        let reply = try await stage.ask("POST", "/v1/tasks", #"{"title":"x"}"#)
        let path = try #require(reply.field("Location"))
        #expect(try await stage.ask("DELETE", path).status == 204)
        _ = try await stage.ask("POST", "/v1/tasks", #"{"title":"y"}"#)
        let late = try await token(early)
        try stage.world.set(Fault(.changes(.noTombstones)))
        #expect(try await stage.ask("GET", "/v1/changes?since=\(late)").status == 200)
        #expect(try await stage.ask("GET", "/v1/changes?since=\(early)").status == 410)
    }

    @Test func `the oracle names the entities in which a client differs from the server`() async throws {
        let stage = try Stage()
        var held: [String: Int] = [:]
        var token: String?
        repeat {
            let page = try await stage.ask(
                "GET",
                "/v1/changes?types=post,profile&limit=50" + (token.map { "&since=" + $0 } ?? "")
            ).json
            for item in page["items"]?.array ?? [] {
                held[item["id"]?.string ?? ""] = item["version"]?.integer.map { Int($0) }
            }
            token = page["hasMore"] == .bool(true) ? page["nextToken"]?.string : nil
        } while token != nil
        #expect(try stage.world.differences(held: held, types: "post,profile", as: "ana") == [])
        _ = try await stage.ask("PUT", "/v1/posts/post_3/like")
        held["post_999"] = 1
        let differences = try stage.world.differences(held: held, types: "post,profile", as: "ana")
        #expect(differences.map(\.id) == ["post_3", "post_999"])
        let body = #"{"as":"ana","types":"post","held":{"post_1":1}}"#
        let http = try await stage.ask("POST", "/_larder/oracles/converged", body).json
        #expect(http["isConverged"] == .bool(false))
        #expect(try await stage.ask("GET", "/_larder/oracles/ledger").json["isSound"] == .bool(true))
    }

    @Test func `schema drift changes replies in the same way each time`() async throws {
        let stage = try Stage()
        let plain = try await stage.ask("GET", "/v1/accounts")
        stage.world.drift = SchemaDrift(seed: 5)
        let drifted = try await stage.ask("GET", "/v1/accounts")
        #expect(drifted.status == 200 && drifted.body != plain.body)
        #expect(drifted.field("Content-Length") == "\(drifted.body.count)")
        #expect(try await stage.ask("GET", "/v1/accounts").body == drifted.body)
        #expect(try drifted.json["items"]?.array?.count == plain.json["items"]?.array?.count)
        stage.world.drift = nil
        #expect(try await stage.ask("GET", "/v1/accounts").body == plain.body)
        let some = try await stage.ask("PUT", "/_larder/drift", #"{"seed":5,"changes":["otherOrder"]}"#)
        #expect(try some.json["drift"]?["changes"] == .array([.string("otherOrder")]))
        let ordered = try await stage.ask("GET", "/v1/accounts").json["items"]?[0]?.object
        #expect(ordered?.members.count == (try plain.json["items"]?[0]?.object)?.members.count)
        #expect(try await stage.ask("PUT", "/_larder/drift", #"{"seed":5,"changes":["x"]}"#).status == 422)
    }

    @Test func `the last error of a script's steps is shown`() async throws {
        let stage = try Stage()
        let script = """
            {"steps": [{"atSeconds": 1, "faults": [{"action": {"type": "reset"}}]},
                       {"atSeconds": 2, "act": {"as": "ana", "method": "DELETE", "path": "/v1/posts/post_999999"}},
                       {"atSeconds": 3, "remove": ["fault-9"]}]}
            """
        let none = try await stage.ask("GET", "/_larder/script", as: nil).text
        #expect(none == #"{"steps":0,"stepsRun":0}"#)
        #expect(try await stage.ask("POST", "/_larder/script", script, as: nil).status == 201)
        let fault = #"{"match":{"path":"/v1/feed"},"action":{"type":"reset"}}"#
        let faults = Array(repeating: fault, count: 10_000).joined(separator: ",")
        #expect(try await stage.ask("POST", "/_larder/faults", "{\"faults\":[\(faults)]}", as: nil).status == 201)
        stage.world.clock.advance(by: .seconds(1))
        var shown = try await stage.ask("GET", "/_larder/script", as: nil).json
        #expect(shown["steps"] == .integer(3) && shown["stepsRun"] == .integer(1))
        #expect(shown["lastError"]?["step"] == .integer(1) && shown["lastError"]?["atSeconds"] == .integer(1))
        #expect(shown["lastError"]?["error"]?["title"]?.string != nil, "\(shown)")
        #expect(shown["lastError"]?["error"]?["detail"]?.string?.contains("10000") ?? false, "\(shown)")
        stage.world.clock.advance(by: .seconds(2))
        shown = try await stage.ask("GET", "/_larder/script", as: nil).json
        #expect(shown["stepsRun"] == .integer(3) && shown["lastError"]?["step"] == .integer(2))
        #expect(shown["lastError"]?["error"]?["status"] == .integer(404), "\(shown)")
    }

    @Test func `an entry is found by its number, and no other number is`() async throws {
        let stage = try Stage { $0.journalCapacity = 8 }
        for number in 1...20 { _ = try await stage.ask("GET", "/v1/posts?limit=\(number)") }
        for (number, status) in [("13", 200), ("20", 200), ("12", 404), ("21", 404), ("0", 404), ("-1", 404)] {
            let reply = try await stage.ask("GET", "/_larder/journal/\(number)", as: nil)
            #expect(reply.status == status, "\(number)")
            if status == 200 { #expect(try reply.json["query"] == .string("limit=\(number)")) }
        }
        #expect(try await stage.ask("GET", "/_larder/journal/9223372036854775807", as: nil).status == 404)
        func numbers(_ query: String) async throws -> [Int64] {
            let page = try await stage.ask("GET", "/_larder/journal?" + query, as: nil).json
            return (page["items"]?.array ?? []).compactMap { $0["number"]?.integer }
        }
        #expect(try await numbers("afterNumber=3") == Array(13...20))
        #expect(try await numbers("afterNumber=18") == [19, 20])
        #expect(try await numbers("afterNumber=20") == [])
        #expect(try await numbers("afterNumber=100") == [])
        #expect(try await numbers("afterNumber=0&limit=2") == [13, 14])
        #expect(try await numbers("limit=2") == [19, 20])
        for (query, hasMore, last) in [
            ("limit=2", true, 20), ("limit=8", false, 20), ("afterNumber=13&limit=2", true, 15),
        ] {
            let page = try await stage.ask("GET", "/_larder/journal?" + query, as: nil).json
            #expect(page["hasMore"] == .bool(hasMore) && page["last"] == .integer(Int64(last)), "\(query)")
        }
        let journal = stage.world.world.control.journal
        #expect(journal.entries(after: .max).isEmpty && journal.entry(.min) == nil && journal.entry(.max) == nil)
        stage.world.clearJournal()
        #expect(journal.entry(20) == nil && journal.entries.isEmpty)
        #expect(try await stage.ask("GET", "/_larder/journal/20", as: nil).status == 404)
    }

    @Test func `a script is validated before its first step, and every error has a pointer`() async throws {
        let stage = try Stage()
        let wrong = """
            {"steps":[{"atSeconds":-1,"faults":[{"action":{"type":"explode"}}]},
            {"faults":[{"match":{"path":"nowhere"},"action":{"type":"truncate"}}],"colour":"red"}]}
            """
        let reply = try await stage.ask("POST", "/_larder/script", wrong)
        let pointers = try reply.json["errors"]?.array?.compactMap { $0["pointer"]?.string } ?? []
        #expect(reply.status == 422)
        #expect(
            Set(pointers) == [
                "/steps/0/atSeconds", "/steps/0/faults/0/action/type", "/steps/1/faults/0/match/path",
                "/steps/1/faults/0/action/byte", "/steps/1/colour",
            ]
        )
        #expect(stage.world.faults.isEmpty)
        let script = """
            {"steps":[{"faults":[{"id":"a","match":{"path":"/v1/feed"},"action":{"type":"respond","status":500}}]},
            {"atSeconds":10,"remove":["a"]},{"atSeconds":20,"journey":"captive-portal"}]}
            """
        #expect(try await stage.ask("POST", "/_larder/script", script).status == 201)
        #expect(try await stage.ask("GET", "/v1/feed").status == 500)
        stage.world.clock.advance(by: .seconds(10))
        #expect(try await stage.ask("GET", "/v1/feed").field("Content-Type") == "application/json")
        stage.world.clock.advance(by: .seconds(10))
        #expect(try await stage.ask("GET", "/v1/feed").text.contains("Free Wi-Fi"))
    }

    @Test func `an action of a person whom the world does not have says so`() async throws {
        let stage = try Stage()
        let reply = try await stage.ask("POST", "/_larder/act", #"{"as":"bean","method":"GET","path":"/v1/me"}"#)
        let result = try reply.json["results"]?[0]
        #expect(reply.status == 200 && result?["status"] == .integer(401))
        #expect(result?["body"]?["detail"]?.string?.contains("'bean'") ?? false, "\(reply.text)")
    }

    @Test func `the summary of the conduct report counts every exchange once`() async throws {
        let stage = try Stage()
        let tag = try await stage.ask("GET", "/v1/feed?limit=2").field("ETag") ?? ""
        _ = try await stage.ask("GET", "/v1/feed?limit=2", fields: ["If-None-Match": tag])
        for _ in 0..<3 { #expect(try await stage.ask("POST", "/v1/posts", #"{"text":"hi"}"#).status == 201) }
        #expect(try await stage.ask("GET", "/v1/nothing").status == 404)
        #expect(try await stage.ask("OPTIONS", "/v1/feed").status == 204)
        let report = try await stage.ask("GET", "/_larder/conduct").json
        #expect(report["writes"] == .integer(3) && report["others"] == .integer(1))
        let parts = ["full", "notModified", "writes", "others", "clientErrors", "serverErrors", "unanswered"]
        #expect(parts.compactMap { report[$0]?.integer }.reduce(0, +) == report["exchanges"]?.integer)
        let text = try await stage.ask("GET", "/_larder/conduct", fields: ["Accept": "text/plain"]).text
        #expect(text.hasPrefix("7 exchanges: 1 full reply, 1 not modified, 3 writes, 1 client error, "), "\(text)")
    }
}

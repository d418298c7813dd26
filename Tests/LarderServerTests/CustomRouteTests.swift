import LarderCoding
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Custom routes", .oneMinute)
struct CustomRouteTests {
    // MARK: Matching

    @Test(
        arguments: [
            ("abc", "xabcx", true), ("^abc$", "xabc", false), ("a.c", "a\nc", false), ("a|bc|", "", true),
            ("^(ab|c)+$", "abcab", true), ("^(ab|c)+$", "aba", false), ("^[a-c_]{2,3}$", "ab_", true),
            ("^[a-c]{2,3}$", "abca", false), ("^[^0-9]*$", "ab1", false), ("^\\d{3}-\\w+$", "123-a_9", true),
            ("^a{2}$", "aa", true), ("^a{2,}$", "aaaaa", true), ("^a{2,}$", "a", false), ("^\\.\\S$", ".é", true),
            ("^(a?){20}a{20}$", "aaaaaaaaaaaaaaaaaaaa", true), ("^([^@]+)@x$", "me@x", true), ("^[]a]+$", "]a", true),
            ("^[\\d.]+$", "1.2", true), ("(?:ab)c", "abc", true), ("^$", "", true), ("日本", "x日本", true),
        ]
    )
    func `expressions match like everywhere else`(pattern: String, text: String, expected: Bool) throws {
        #expect(try TextPattern(pattern).matches(text) == expected)
    }

    @Test(arguments: ["(a", "a)", "*a", "[a", "a{3,1}", "a{x}", "\\q", "(?=a)", "a{1000}{1000}", "\\"])
    func `what is not an expression is rejected`(pattern: String) {
        #expect(throws: TextPattern.Failure.self) { try TextPattern(pattern) }
    }

    @Test func `no expression takes exponential time`() throws {
        let text = String(repeating: "a", count: 5_000) + "!"
        for pattern in ["^(a+)+$", "^(a|aa)*$", "^(a*)*b$", "(a|a)*(a|a)*c"] {
            #expect(try !TextPattern(pattern).matches(text))
        }
    }

    @Test(
        arguments: [
            ("$.a.b", "[1]"), ("a.b", "[1]"), ("$.list[1].x", "[3]"), ("list.0.x", "[2]"), ("$.list[*].x", "[2,3]"),
            ("nothing", "[]"), ("a.b.c", "[]"), ("list.9", "[]"),
        ]
    )
    func `paths into documents`(path: String, expected: String) throws {
        let document = try JSONParser.parse(Array(#"{"a":{"b":1},"list":[{"x":2},{"x":3}]}"#.utf8))
        let values = try #require(JSONPath(path)).values(in: document)
        #expect(JSONValue.array(values).encoded == Array(expected.utf8))
    }

    @Test func `the JSON of a route is the same in a world that is addressed by path`() async throws {
        let site = try RouteSite(routes: #"{"path": "/picture", "json": {"url": "/v1/images/x"}}"#)
        _ = try site.backend.makeWorld(id: "other")
        #expect(try await site.text("GET", "/w/other/picture") == #"{"url":"/v1/images/x"}"#)
    }

    @Test func `a route is chosen by method, path, query, field and body`() async throws {
        let site = try RouteSite(
            routes: """
                {"path": "/search", "when": {"query.q": "cat"}, "text": "cats"},
                {"path": "/search", "when": {"query.q": {"matches": "^d.g$"}}, "text": "dogs"},
                {"path": "/search", "when": {"query.q": null}, "text": "everything"},
                {"path": "/page", "when": {"field.accept-language": {"matches": "^pt"}}, "text": "olá"},
                {"path": "/page", "text": "hello"},
                {"method": "POST", "path": "/orders", "when": {"body.lines[*].sku": "A1", "body.paid": true}, "text": "A1"},
                {"method": "POST", "path": "/orders", "when": {"body.lines": {"exists": true}}, "text": "other"},
                {"method": "*", "path": "/files/*", "text": "{{method}} {{path.*}}"},
                {"path": "/reports/{year}.csv", "text": "of {{path.year}}"}
                """
        )
        #expect(try await site.text("GET", "/search?q=cat") == "cats")
        #expect(try await site.text("GET", "/search?q=dog") == "dogs")
        #expect(try await site.text("GET", "/search") == "everything")
        #expect(try await site.text("GET", "/search?q=cow") == "404")
        #expect(try await site.text("GET", "/page", nil, ["Accept-Language": "pt-PT"]) == "olá")
        #expect(try await site.text("GET", "/page") == "hello")
        #expect(try await site.text("POST", "/orders", #"{"lines":[{"sku":"B"},{"sku":"A1"}],"paid":true}"#) == "A1")
        #expect(try await site.text("POST", "/orders", #"{"lines":[{"sku":"A1"}],"paid":false}"#) == "other")
        #expect(try await site.text("POST", "/orders", "{}") == "404")
        #expect(try await site.text("DELETE", "/files/a/b%20c") == "DELETE a/b c")
        #expect(try await site.text("GET", "/reports/2026.csv") == "of 2026")
        #expect(try await site.text("GET", "/reports/.csv") == "404")
        let wrong = try await site.ask("DELETE", "/page")
        #expect(wrong.status == 405 && wrong.field("Allow") == "GET, HEAD, OPTIONS")
        let missing = try await site.ask("GET", "/serach")
        #expect(missing.status == 404 && missing.text.contains("Did you mean GET /search?"))
        // The demo API is off.
        #expect(try await site.text("GET", "/v1/feed") == "404")
        #expect(try await site.text("GET", "/healthz") != "404")
    }

    // MARK: Templates

    @Test func `templates have values of the request, with their types`() async throws {
        let site = try RouteSite(
            routes: """
                {"method": "POST", "path": "/users/{id}", "status": 201, "fields": {"Location": "/users/{{path.id}}"},
                 "json": {"id": "{{path.id}}", "age": "{{body.age}}", "hello": "Hi {{body.name}}!", "q": "{{query.q \\"none\\"}}",
                          "agent": "{{field.user-agent}}", "tags": "{{body.tags}}"}},
                {"path": "/now", "text": "{{now}} {{now 60}}"},
                {"path": "/list", "json": {"{{repeat 3}}": {"i": "{{index}}", "n": "{{number 5 5}}"}}}
                """
        )
        site.backend.main.clock.freeze()
        site.backend.main.clock.set(to: try #require(WallTime(rfc3339: "2026-01-01T00:00:00Z")))
        let body = #"{"name":"Ana","age":7,"tags":["a"]}"#
        let reply = try await site.ask("POST", "/users/u%2F1", body, ["User-Agent": "me"])
        #expect(reply.status == 201 && reply.field("Location") == "/users/u/1")
        #expect(
            reply.text == #"{"id":"u/1","age":7,"hello":"Hi Ana!","q":"none","agent":"me","tags":["a"]}"#
        )
        #expect(try await site.text("GET", "/now") == "2026-01-01T00:00:00.000Z 2026-01-01T00:01:00.000Z")
        #expect(try await site.text("GET", "/list") == #"[{"i":0,"n":5},{"i":1,"n":5},{"i":2,"n":5}]"#)
        let form = ["Content-Type": "application/x-www-form-urlencoded"]
        let posted = try await site.ask("POST", "/users/2", "name=Bo+B&age=9", form)
        #expect(posted.text.contains(#""age":"9","hello":"Hi Bo B!""#))
    }

    @Test func `a reply has one number from a counter, and each item of a repeated part its own`() async throws {
        let site = try RouteSite(
            routes: """
                {"method": "POST", "path": "/orders", "fields": {"Location": "/orders/{{counter orders}}"},
                 "json": {"id": "{{counter orders}}", "at": "/orders/{{counter orders}}", \
                 "lines": {"{{repeat 2}}": ["{{counter lines}}", "{{counter lines}}"]}}}
                """
        )
        for (order, lines) in [(1, "[[1,1],[2,2]]"), (2, "[[3,3],[4,4]]")] {
            let reply = try await site.ask("POST", "/orders", "")
            #expect(reply.text == #"{"id":\#(order),"at":"/orders/\#(order)","lines":\#(lines)}"#)
            #expect(reply.field("Location") == "/orders/\(order)")
        }
    }

    @Test func `invented values follow from the world's seed and the request`() async throws {
        let routes = """
            {"path": "/people/{id}", "json": {"name": "{{fake name}}", "email": "{{fake email}}", "n": "{{number 1 1000000}}"}},
            {"method": "POST", "path": "/ids", "text": "{{uuid}} {{counter ids}}"}
            """
        let (one, two) = (try RouteSite(routes: routes), try RouteSite(routes: routes))
        let first = try await one.text("GET", "/people/1")
        #expect(try await one.text("GET", "/people/1") == first)
        #expect(try await two.text("GET", "/people/1") == first)
        #expect(try await one.text("GET", "/people/2") != first)
        let ids = [try await one.text("POST", "/ids", ""), try await one.text("POST", "/ids", "")]
        #expect(ids[0].hasSuffix(" 1") && ids[1].hasSuffix(" 2") && ids[0].prefix(36) != ids[1].prefix(36))
        #expect(
            try TextPattern("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} 1$").matches(ids[0])
        )
        #expect([try await two.text("POST", "/ids", ""), try await two.text("POST", "/ids", "")] == ids)
        await one.backend.stop()
        await two.backend.stop()
    }

    // MARK: Orders and states

    @Test func `replies come in order, in turn, or drawn by weight`() async throws {
        let site = try RouteSite(
            routes: """
                {"path": "/job", "order": "sequence", "replies": [{"status": 202, "text": "1"}, {"text": "2"}, {"text": "3"}]},
                {"path": "/turn", "order": "cycle", "replies": [{"text": "a"}, {"text": "b"}]},
                {"path": "/dice", "order": "random", "replies": [{"weight": 9, "text": "x"}, {"weight": 1, "text": "y"}]}
                """
        )
        var (jobs, turns, dice) = ("", "", "")
        for _ in 0..<5 { jobs += try await site.text("GET", "/job") }
        for _ in 0..<5 { turns += try await site.text("GET", "/turn") }
        for _ in 0..<60 { dice += try await site.text("GET", "/dice") }
        #expect(jobs == "12333" && turns == "ababa")
        #expect(dice.count { $0 == "x" } > 40 && dice.contains("y"))
        try site.backend.main.reset()
        #expect(try await site.text("GET", "/job") == "1")
    }

    @Test func `states are moved by replies and belong to a world and its snapshots`() async throws {
        let site = try RouteSite(
            routes: """
                {"path": "/cart", "when": {"state.cart": "full"}, "text": "{{state.cart}} {{state.who}}"},
                {"path": "/cart", "text": "empty"},
                {"method": "POST", "path": "/cart", "status": 204, "set": {"cart": "full", "who": "{{body.who}}"}},
                {"method": "DELETE", "path": "/cart", "status": 204, "set": {"cart": null}}
                """
        )
        #expect(try await site.text("GET", "/cart") == "empty")
        try site.backend.main.takeSnapshot("before")
        #expect(try await site.ask("POST", "/cart", #"{"who":"Ana"}"#).status == 204)
        #expect(try await site.text("GET", "/cart") == "full Ana")
        _ = try site.backend.makeWorld(id: "other")
        #expect(try await site.text("GET", "/w/other/cart") == "empty")
        #expect(try await site.ask("DELETE", "/cart").status == 204)
        #expect(try await site.text("GET", "/cart") == "empty")
        #expect(try await site.ask("POST", "/cart", #"{"who":"Bo"}"#).status == 204)
        #expect(try await site.text("GET", "/cart") == "full Bo")
        try site.backend.main.restore("before")
        #expect(try await site.text("GET", "/cart") == "empty")
    }

    // MARK: What the engine adds

    @Test func `validators, ranges, HEAD, compression and CORS are those of every route`() async throws {
        let long = String(repeating: "word ", count: 400)
        let site = try RouteSite([
            "routes.json": """
            {"routes": [{"path": "/page", "file": "page.html"}, {"path": "/long", "text": "\(long)"},
                        {"path": "/cached", "fields": {"Cache-Control": "max-age=60", "Set-Cookie": ["a=1", "b=2"]}, "json": [1]}]}
            """, "page.html": "<p>0123456789</p>",
        ])
        let page = try await site.ask("GET", "/page")
        let tag = try #require(page.field("ETag"))
        #expect(page.text == "<p>0123456789</p>" && page.field("Content-Type") == "text/html; charset=utf-8")
        #expect(page.field("Cache-Control") == "no-cache")
        #expect(try await site.ask("GET", "/page", nil, ["If-None-Match": tag]).status == 304)
        let part = try await site.ask("GET", "/page", nil, ["Range": "bytes=3-6"])
        #expect(part.status == 206 && part.text == "0123" && part.field("Content-Range") == "bytes 3-6/17")
        #expect(try await site.ask("GET", "/page", nil, ["Range": "bytes=99-"]).status == 416)
        let head = try await site.ask("HEAD", "/page")
        #expect(head.status == 200 && head.body.isEmpty && head.field("Content-Length") == "17")
        let coded = try await site.ask("GET", "/long", nil, ["Accept-Encoding": "gzip"])
        #expect(coded.field("Content-Encoding") == "gzip" && coded.body.count < 200)
        let codedTag = try #require(coded.field("ETag"))
        let again = try await site.ask("GET", "/long", nil, ["Accept-Encoding": "gzip", "If-None-Match": codedTag])
        #expect(again.status == 304)
        let cached = try await site.ask("GET", "/cached", nil, ["Origin": "http://localhost:3000"])
        #expect(
            cached.field("Cache-Control") == "max-age=60" && cached.head.contains("a=1") && cached.head.contains("b=2")
        )
        #expect(cached.field("Access-Control-Allow-Origin") == "http://localhost:3000")
        let preflight = try await site.ask(
            "OPTIONS",
            "/cached",
            nil,
            ["Origin": "http://localhost:3000", "Access-Control-Request-Method": "GET"]
        )
        #expect(preflight.status == 204 && preflight.field("Access-Control-Allow-Methods") == "GET, HEAD, OPTIONS")
    }

    @Test func `a preflight is no request for a route of every method`() async throws {
        let site = try RouteSite(routes: #"{"method": "*", "path": "/api/*", "json": {"n": "{{counter c}}"}}"#)
        let preflight = ["Origin": "http://localhost:3000", "Access-Control-Request-Method": "PUT"]
        let reply = try await site.ask("OPTIONS", "/api/x", nil, preflight)
        #expect(reply.status == 204 && reply.field("Access-Control-Allow-Methods")?.contains("PUT") ?? false)
        #expect(try await site.text("OPTIONS", "/api/x") == #"{"n":1}"#)
    }

    @Test func `a page can read the fields of a route, whose tag and permission are its own`() async throws {
        let site = try RouteSite(
            routes: #"""
                {"path": "/a", "fields": {"X-Request-Id": "7", "ETag": "\"v1\""}, "json": 1},
                {"path": "/b", "fields": {"Access-Control-Allow-Origin": "*"}, "json": 1}
                """#
        )
        let page = ["Origin": "http://localhost:3000"]
        let reply = try await site.ask("GET", "/a", nil, page)
        #expect(reply.field("ETag") == "\"v1\"")
        #expect(reply.field("Access-Control-Expose-Headers")?.hasSuffix(", X-Request-Id") ?? false)
        #expect(try await site.ask("GET", "/a", nil, ["If-None-Match": "\"v1\""]).status == 304)
        let open = try await site.ask("GET", "/b", nil, page)
        #expect(open.head.split(separator: "Access-Control-Allow-Origin").count == 2, "\(open.head)")
    }

    @Test func `a wait for a state changes nothing, and neither it nor an act waits for the delay of a route`()
        async throws
    {
        let site = try RouteSite(
            routes: """
                {"path": "/last", "delaySeconds": 3600, "json": {"a": 1}},
                {"path": "/count", "json": {"a": "{{counter c}}"}},
                {"method": "POST", "path": "/orders", "status": 201, "delaySeconds": 3600, "json": {"id": 1}}
                """
        )
        func wait(_ path: String, _ value: Int) async throws -> Int {
            let state = #"{"path": "\#(path)", "pointer": "/a", "equals": \#(value)}"#
            return try await site.ask("POST", "/_larder/wait", "{\"state\": \(state), \"timeoutSeconds\": 0.01}").status
        }
        let before = site.backend.main.commitCount
        #expect(try await wait("/last", 1) == 200)
        #expect(try await wait("/count", 2) != 200)
        #expect(site.backend.main.commitCount == before)
        #expect(try await site.text("GET", "/count") == #"{"a":1}"#)
        let act = try await site.ask("POST", "/_larder/act", #"{"method": "POST", "path": "/orders", "body": {}}"#).json
        #expect(act["results"]?[0]?["status"]?.integer == 201 && act["results"]?[0]?["body"]?["id"]?.integer == 1)
    }

    @Test func `an idempotency key has one effect and one reply`() async throws {
        let site = try RouteSite(
            routes: #"{"method": "POST", "path": "/orders", "status": 201, "json": {"id": "{{counter orders}}"}}"#
        )
        let key = ["Idempotency-Key": "k1"]
        let first = try await site.ask("POST", "/orders", "{}", key)
        let second = try await site.ask("POST", "/orders", "{}", key)
        #expect(first.status == 201 && first.text == #"{"id":1}"# && second.text == first.text)
        #expect(second.field("Idempotent-Replayed") == "true")
        #expect(try await site.ask("POST", "/orders", #"{"a":1}"#, key).status == 422)
        #expect(try await site.text("POST", "/orders", "{}", ["Idempotency-Key": "k2"]) == #"{"id":2}"#)
        #expect(try await site.text("POST", "/nothing", "{}", key) == "404")
    }

    @Test func `the reply to a key is given again although its conditions do not hold any more`() async throws {
        let site = try RouteSite(
            routes: """
                {"method": "POST", "path": "/seat", "when": {"state.taken": {"exists": false}}, "set": {"taken": "yes"}, "text": "yours"},
                {"method": "POST", "path": "/free", "when": {"state.taken": {"exists": false}}, "text": "free"}
                """
        )
        #expect(try await site.text("POST", "/seat", "{}", ["Idempotency-Key": "a"]) == "yours")
        let again = try await site.ask("POST", "/seat", "{}", ["Idempotency-Key": "a"])
        #expect(again.status == 200 && again.text == "yours" && again.field("Idempotent-Replayed") == "true")
        #expect(try await site.text("POST", "/seat", "{}", ["Idempotency-Key": "b"]) == "404")
        #expect(try await site.text("POST", "/seat", "{}") == "404")
        #expect(try await site.text("POST", "/free", "{}", ["Idempotency-Key": "a"]) == "404")
    }

    @Test func `errors are problems, and redirects lead on`() async throws {
        let site = try RouteSite(
            routes: """
                {"path": "/users/{id}", "status": 404, "problem": "There is no user {{path.id}}."},
                {"path": "/down", "status": 503, "fields": {"Retry-After": "3"}}, {"path": "/tea", "status": 418},
                {"path": "/old", "redirect": "/new?from={{query.x}}"}
                """
        )
        let missing = try await site.ask("GET", "/users/9")
        #expect(missing.field("Content-Type") == "application/problem+json")
        #expect(
            missing.text == #"{"type":"about:blank","title":"Not Found","status":404,"detail":"There is no user 9."}"#
        )
        let down = try await site.ask("GET", "/down")
        #expect(down.status == 503 && down.field("Retry-After") == "3" && down.text.contains("Service Unavailable"))
        #expect(try await site.ask("GET", "/tea").text == #"{"type":"about:blank","title":"Status 418","status":418}"#)
        let old = try await site.ask("GET", "/old?x=1")
        #expect(old.status == 302 && old.field("Location") == "/new?from=1")
    }

    @Test func `a delay is in the world's time, and ends when the client leaves`() async throws {
        let site = try RouteSite(
            routes: #"{"path": "/slow", "delaySeconds": 30, "text": "late"}, {"path": "/fast", "text": "now"}"#
        )
        let main = site.backend.main
        main.clock.freeze()
        let slow = try site.send("GET", "/slow")
        await reached { main.world.clock.waitCount > 0 }
        #expect(try await site.text("GET", "/fast") == "now")
        main.clock.advance(by: .seconds(30))
        #expect(try await slow.reply().text == "late")
        let leaving = try site.send("GET", "/slow")
        await reached { main.world.clock.waitCount > 0 }
        leaving.finishSending()
        await reached { main.world.clock.waitCount == 0 }
    }

    @Test(arguments: [false, true]) func `a key is in flight while its reply is delayed`(isInFront: Bool) async throws {
        let routes = #"{"routes": [{"method": "POST", "path": "/a", "delaySeconds": 3600, "text": "late"}]}"#
        let server = try RouteSite(routes: #"{"path": "/own", "text": "behind"}"#)
        let url = try #require(HTTPURL(server.backend.url))
        let site = try RouteSite(["routes.json": routes]) { if isInFront { $0.origin = .server(url) } }
        let main = site.backend.main
        let key = ["Idempotency-Key": "k"]
        let first = try site.send("POST", "/a", "{}", key)
        await reached { main.world.clock.waitCount > 0 }
        let second = try await site.ask("POST", "/a", "{}", key)
        #expect(second.status == 409 && second.problem == "idempotency-in-progress")
        main.clock.advance(by: .seconds(3_600))
        #expect(try await first.reply().text == "late")
        #expect(try await site.ask("POST", "/a", "{}", key).field("Idempotent-Replayed") == "true")
    }

    @Test func `a webhook follows the reply, with values of the request`() async throws {
        let receiver = try RouteSite(routes: #"{"method": "POST", "path": "/hook/{id}", "status": 204}"#)
        let site = try RouteSite(
            routes: """
                {"method": "POST", "path": "/orders", "status": 201, "set": {"event": "order"}, "json": {"id": 1}, "webhooks": [
                  {"url": "http://127.0.0.1:\(receiver.backend.port)/hook/1", "fields": {"X-Event": "{{state.event}}"},
                   "json": {"name": "{{body.name}}"}}]}
                """
        )
        #expect(try await site.text("POST", "/orders", #"{"name":"tea"}"#) == #"{"id":1}"#)
        let arrived = JournalFilter("POST", "/hook/1")
        #expect(await receiver.backend.main.wait(for: .entries(arrived, count: 1), limit: .seconds(60)))
        let entry = try #require(await receiver.backend.main.journal(arrived).first)
        #expect(entry.requestField("X-Event") == "order" && entry.requestField("Content-Length") == "14")
    }

    @Test func `a webhook that fails is named with its URL and its route, without secrets`() async throws {
        let closed = try ClosedPort()
        let receiver = try RouteSite(routes: #"{"method": "PUT", "path": "/hook", "status": 500}"#)
        let (lost, failing) = ("127.0.0.1:\(closed.port)", "127.0.0.1:\(receiver.backend.port)")
        let site = try RouteSite(
            routes: """
                {"method": "POST", "path": "/lost/{id}", "webhooks": [{"url": "http://me:secret@\(lost)/hook?key=k"}]},
                {"method": "POST", "path": "/failing", "webhooks": [{"url": "http://\(failing)/hook", "method": "PUT"}]}
                """
        )
        let webhooks = site.backend.plane.backend.customRoutes.webhooks
        _ = try await site.ask("POST", "/lost/1")
        await reached { webhooks.totals.failed == 1 }
        let failure = try await site.ask("GET", "/_larder/files").json["webhooks"]?["lastFailure"]?.string
        #expect(
            failure
                == "POST http://\(lost)/hook of the route POST /lost/{id} cannot be reached: Connection refused"
        )
        _ = try await site.ask("POST", "/failing")
        await reached { webhooks.totals.failed == 2 }
        #expect(
            webhooks.totals.lastFailure
                == "PUT http://\(failing)/hook of the route POST /failing was answered with 500"
        )
        withExtendedLifetime(closed) {}
    }

    @Test func `faults, gates, journal and verdicts apply`() async throws {
        let site = try RouteSite(
            routes: #"{"path": "/news/{id}", "fields": {"Cache-Control": "max-age=60"}, "json": {"id": "{{path.id}}"}}"#
        )
        let main = site.backend.main
        try main.set(Fault(.respond(CannedReply(status: 503)), when: FaultMatch("GET", "/news/*")))
        #expect(try await site.ask("GET", "/news/1").status == 503)
        main.removeFaults()
        #expect(try await site.ask("GET", "/news/1").status == 200)
        #expect(try await site.ask("GET", "/news/1").status == 200)
        let entries = await main.journal(JournalFilter("GET", "/news/1"))
        #expect(entries.map(\.status) == [503, 200, 200] && entries[0].faults.count == 1)
        #expect(entries[2].verdicts.contains { $0.contains("fresh") })
    }

    // MARK: Other sources

    @Test func `a route wins over a collection and over the demo API, which stay beside it`() async throws {
        let data = try CollectionShop.directory(["todos.json": CollectionShop.todos])
        let routes = #"{"path": "/todos/1", "text": "mine"}, {"method": "POST", "path": "/login", "text": "in"}"#
        let site = try RouteSite(routes: routes, .collections(directory: data.path))
        #expect(try await site.text("GET", "/todos/1") == "mine")
        #expect(try await site.ask("GET", "/todos/2").json["title"]?.string == "Bread")
        #expect(try await site.ask("DELETE", "/todos/1").status == 204)
        #expect(try await site.text("POST", "/login", "") == "in")
        let near = try await site.ask("POST", "/logni", "{}").text
        #expect(near.contains("There is no collection 'logni'. Did you mean POST /login?"), "\(near)")
        let read = try await site.ask("GET", "/logni").text
        #expect(read.contains("There is no collection 'logni'. Did you mean POST /login?"), "\(read)")
        let wrong = try await site.ask("GET", "/login")
        #expect(wrong.status == 405 && wrong.field("Allow") == "OPTIONS, POST", "\(wrong.text)")
        // No collection has the path, so that its methods are those of the route, and no other path takes DELETE.
        let other = try await site.ask("DELETE", "/login")
        #expect(other.status == 405 && other.field("Allow") == "OPTIONS, POST", "\(other.text)")
        #expect(try await site.ask("DELETE", "/todoss").text.contains("Did you mean /todos?"))
        #expect(try await site.ask("OPTIONS", "/todoss").status == 204)
        await site.backend.stop()
        let demo = try RouteSite(
            routes: #"{"path": "/v1/feed", "when": {"query.mine": "1"}, "text": "mine"}"#,
            .generated(WorldSize(), picturesFrom: nil)
        )
        #expect(try await demo.ask("GET", "/v1/feed?limit=1").status == 200)
        #expect(try await demo.text("GET", "/v1/feed?mine=1") == "mine")
        #expect(try await demo.ask("GET", "/v1/profiles/user_1").status == 200)
    }

    // MARK: Wrong files

    @Test(
        arguments: [
            (
                "{\"routes\": [\n {\"path\": \"/a\",\n \"statos\": 1}]}",
                ":3: /routes/0/statos is unknown; did you mean `status`?"
            ),
            ("{\"routes\": [{\"path\": \"/a\"},\n{\"text\": \"x\"}]}", ":2: /routes/1/path must be a path"),
            (
                "{\"routes\": [\n\n{\"path\": \"/a\", \"text\": \"{{fake nmae}}\"}]}",
                ":3: /routes/0/text has no fake 'nmae'; did you mean 'name'?"
            ),
            (
                "{\"routes\": [{\"path\": \"/a\", \"json\": {\"x\": [1,\n\"{{qurey.x}}\"]}}]}",
                "/json has the unknown expression '{{qurey.x}}'; did you mean 'query'?"
            ),
            ("{\"routes\": [{\"path\": \"/a/{id}{x}\"}]}", ":1: /routes/0/path must begin with /"),
            (
                "{\"routes\": [{\"path\": \"/a/{id}\", \"text\": \"{{path.di}}\"}]}",
                "has '{{path.di}}', and the path has no such parameter; did you mean 'id'?"
            ),
            ("{\"routes\": [{\"path\": \"/a\", \"when\": {\"path.id\": \"1\"}}]}", "must name a parameter of the path"),
            ("{\"routes\": [{\"path\": \"/a\", \"text\": \"{{number \(Int.min) 1}}\"}]}", "as in '{{number 1 100}}'"),
            ("{\"routes\": [{\"path\": \"/a\", \"text\": \"{{now \(Int.min)}}\"}]}", "as in '{{now -3600}}'"),
            ("\u{FEFF}{\"routes\": []}", ":1: begins with a byte order mark"),
            ("{\"routes\": [{\"path\": \"/f/{*}/*\"}]}", "/routes/0/path must begin with /"),
            ("{\"routes\": [{\"path\": \"/a\", \"fields\": {\"ETag\": \"v1\"}}]}", "/fields/ETag must be in quotes"),
            (
                "{\"routes\": [{\"path\": \"/a\", \"webhooks\": [{\"url\": \"http://localhost/{{uuid}}\"}]}]}",
                "/url cannot have templates"
            ),
            (#"{"routes": [{"path": "/x/:id/b"}]}"#, "/routes/0/path has ':id'; write {id} for a parameter"),
            (
                #"{"routes": [{"path": "/a", "json": {"b": [{"{{ repeat 3 }}": 1, "c": 1}]}}]}"#,
                "/json has '{{ repeat 3 }}' beside other members; it must be the only one of its object"
            ),
            (
                #"{"routes": [{"path": "/a", "json": {"{{repeat}}": 1}}]}"#,
                "/json has '{{repeat}}'; repeat takes a number up to 1000"
            ),
            (#"{"routes": [{"path": "/a", "base64": "iVBO*"}]}"#, "/routes/0/base64 must be Base64 of one line"),
            ("{\"routes\": [{\"path\": \"/_larder/x\"}]}", "/routes/0/path must not begin with /_larder"),
            (
                "{\"routes\": [{\"path\": \"/a\",\n\"when\": {\"query.q\": {\"matches\": \"(\"}}}]}",
                ":2: /routes/0/when/query.q/matches has a '(' without a ')'"
            ),
            (
                #"{"routes": [{"path": "/a", "when": {"query.q": {"matches": "a{1,9223372036854775807}"}}}]}"#,
                "has a wrong or too large repetition '{1,9223372036854775807}'"
            ),
            ("{\"routes\": [{\"path\": \"/a\", \"when\": {\"cookie\": \"x\"}}]}", "/when/cookie must be query.NAME"),
            ("{\"routes\": [{\"path\": \"/a\",\n \"file\": \"missing.txt\"}]}", ":2: /routes/0/file "),
            ("{\"routes\": [{\"path\": \"/a\", \"text\": \"a\", \"json\": 1}]}", "cannot be given together"),
            (
                "{\"routes\": [{\"path\": \"/a\", \"webhooks\": [{\"url\": \"http://example.com/\"}]}]}",
                "/webhooks/0/url must be an http URL of this machine"
            ),
            ("{\"routes\": [\n{\"path\": \"/a\"},]}", ":2: column 16: this character cannot begin a value"),
            ("[]", ":1: must be an object with `routes`"),
        ]
    )
    func `a wrong file is a sentence with the line and the nearest name`(text: String, expected: String) throws {
        let directory = try CollectionShop.directory(["routes.json": text])
        let error = #expect(throws: FileError.self) {
            var reader = RouteReader(directory.path)
            try reader.read()
        }
        let sentence = error?.description ?? ""
        #expect(sentence.hasPrefix(directory.path + "/routes.json") && sentence.contains(expected), "\(sentence)")
    }

    @Test func `all errors of all files are listed, each on a line, the first 20 of many`() throws {
        let directory = try CollectionShop.directory([
            "a.json": "{\"routes\": [\n{\"path\": \"/a\", \"statos\": 1},\n{\"paht\": \"/b\"}]}", "b.json": "[",
            "c.json": "{\"routes\": [\(Array(repeating: "{}", count: 18).joined(separator: ",\n"))]}",
        ])
        let error = #expect(throws: FileError.self) {
            var reader = RouteReader(directory.path)
            try reader.read()
        }
        let lines = (error?.description ?? "").split(separator: "\n")
        let expected = [
            "/a.json:2: /routes/0/statos is unknown", "/a.json:3: /routes/1/paht is unknown; did you mean `path`?",
            "/a.json:3: /routes/1/path must be a path", "/b.json:1: column 2", "/c.json:1: /routes/0/path must be",
            "/c.json:2: /routes/1/path must be",
        ]
        for (line, expected) in zip(lines, expected) { #expect(line.hasPrefix(directory.path + expected), "\(line)") }
        #expect(lines.count == 21 && lines.last == "and 2 more", "\(lines)")
    }

    // MARK: What only the demo has

    @Test func `routes have no ledger`() async throws {
        let site = try RouteSite(routes: #"{"path": "/a"}"#)
        let ledger = try await site.ask("GET", "/_larder/oracles/ledger")
        #expect(ledger.status == 400 && ledger.text.contains("The ledger needs the data of the demo backend; "))
    }
}

@Suite("Custom routes in front of another server", .oneMinute)
struct RoutesBeforeProxyTests {
    @Test func `a route that fits answers, and the rest is forwarded`() async throws {
        let server = try RouteSite(routes: #"{"method": "*", "path": "/*", "text": "{{path.*}} of the server"}"#)
        let url = try #require(HTTPURL(server.backend.url))
        let routes = """
            {"path": "/own/{id}", "json": {"id": "{{path.id}}", "count": "{{counter own}}"}},
            {"path": "/when", "when": {"query.q": "1"}, "text": "own"}, {"method": "PUT", "path": "/put", "text": "own"},
            {"method": "*", "path": "/mock/*", "when": {"field.x-mock": "1"}, "text": "own"}
            """
        let proxy = try RouteSite(["routes.json": "{\"routes\": [\(routes)]}"]) { $0.origin = .server(url) }
        #expect(try await proxy.text("GET", "/own/7") == #"{"id":"7","count":1}"#)
        #expect(try await proxy.text("GET", "/other") == "other of the server")
        #expect(try await proxy.text("GET", "/when?q=1") == "own")
        #expect(try await proxy.text("GET", "/when?q=2") == "when of the server")
        #expect(try await proxy.text("GET", "/put") == "put of the server")
        let preflight = ["Origin": "http://localhost:3000", "Access-Control-Request-Method": "PUT"]
        for path in ["/put", "/mock/1"] {
            let granted = try await proxy.ask("OPTIONS", path, nil, preflight)
            #expect(granted.field("Access-Control-Allow-Methods")?.contains("PUT") ?? false)
        }
        // Faults apply to both.
        let fault = #"{"match": {"path": "/*/*"}, "action": {"type": "respond", "status": 503}}"#
        _ = try await proxy.ask("POST", "/_larder/faults", fault)
        #expect(try await proxy.ask("GET", "/own/8").status == 503)
        let metrics = try await proxy.ask("GET", "/_larder/metrics").text
        // A request is counted by the route that takes its path and method, whatever its conditions.
        #expect(metrics.contains(#"{route="proxy",status="200"} 2"#), "\(metrics)")
    }

    @Test func `a link of a route leads into the requested world, and one of the server stays`() async throws {
        let moved = #"{"path": "/moved", "status": 302, "fields": {"Location": "//other/x"}}"#
        let server = try RouteSite(routes: moved)
        let url = try #require(HTTPURL(server.backend.url))
        let routes = #"{"method": "POST", "path": "/orders", "status": 201, "fields": {"Location": "/orders/9"}}"#
        let proxy = try RouteSite(["routes.json": "{\"routes\": [\(routes)]}"]) { $0.origin = .server(url) }
        #expect(try await proxy.ask("POST", "/orders", "{}").field("Location") == "/orders/9")
        _ = try proxy.backend.makeWorld(id: "other")
        #expect(try await proxy.ask("POST", "/w/other/orders", "{}").field("Location") == "/w/other/orders/9")
        #expect(try await proxy.ask("GET", "/w/other/moved").field("Location") == "//other/x")
    }
}

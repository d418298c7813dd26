import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Your own data", .oneMinute)
struct CollectionTests {
    private typealias Shop = CollectionShop

    @Test(
        arguments: [
            ("", [1, 2, 7, 4]), ("?done=true", [2, 4]), ("?id=1&id=4", [1, 4]), ("?by.name=Ana", [1, 7]),
            ("?price_gte=3", [1, 7]), ("?price_lte=2.5", [2]), ("?id_ne=1&id_ne=2", [7, 4]),
            ("?title_like=A", [2, 7, 4]),
            ("?q=FOOD", [1, 7]), ("?tags=home", [7]), ("?title=wash%20%26%20dry", [7]), ("?price=null", [4]),
            ("?_sort=price", [4, 2, 1, 7]), ("?_sort=by.name,-id", [7, 1, 2, 4]),
            ("?_sort=id&_order=desc", [7, 4, 2, 1]),
            ("?_sort=title", [2, 1, 4, 7]), ("?_start=1&_limit=2", [2, 7]), ("?_page=2&_limit=3", [4]),
            ("?_page=9&_limit=3", []), ("?done=false&_sort=-price&_limit=1", [7]),
        ] as [(String, [Int64])]
    )
    func `lists are filtered, sorted and cut`(query: String, expected: [Int64]) async throws {
        let shop = try CollectionShop()
        #expect(try await shop.ids("/todos" + query) == expected)
    }

    @Test func `an offset page says the total and leads to the others`() async throws {
        let shop = try CollectionShop()
        let reply = try await shop.ask("GET", "/todos?done_ne=x&_page=2&_limit=1")
        #expect(reply.field("X-Total-Count") == "4")
        #expect(
            reply.field("Link") == """
                <?done_ne=x&_page=1&_limit=1>; rel="first", <?done_ne=x&_page=1&_limit=1>; rel="prev", \
                <?done_ne=x&_page=3&_limit=1>; rel="next", <?done_ne=x&_page=4&_limit=1>; rel="last"
                """
        )
        let tag = try #require(reply.field("ETag"))
        let target = "/todos?done_ne=x&_page=2&_limit=1"
        #expect(try await shop.ask("GET", target, nil, ["If-None-Match": tag]).status == 304)
        // A page that begins between two pages leads to the same kind of page.
        let between = try await shop.ask("GET", "/todos?_start=1&_limit=2").field("Link") ?? ""
        #expect(between.contains(#"<?_start=3&_limit=2>; rel="next""#), "\(between)")
        let first = try await shop.ask("GET", "/todos?_start=1&_end=3").field("Link") ?? ""
        #expect(first.contains(#"<?_start=0&_limit=1>; rel="prev""#), "\(first)")
        // The page is the same, the total is not.
        #expect(try await shop.ask("POST", "/todos", "{}").status == 201)
        #expect(try await shop.ask("GET", target, nil, ["If-None-Match": tag]).status == 200)
    }

    @Test(arguments: ["/todos?limit=2", "/todos?_sort=-done,title&limit=1", "/todos?done=false&limit=1"])
    func `keyset pages have each document once, also when the last one is deleted`(first: String) async throws {
        let shop = try CollectionShop()
        let plain = first.split(separator: "&").filter { !$0.hasPrefix("limit=") }.joined(separator: "&")
        let expected = try await shop.ids(plain == first ? "/todos" : plain)
        var (seen, target, hasDeleted): ([Int64], String?, Bool) = ([], first, false)
        while let now = target, seen.count <= 2 * expected.count {
            let reply = try await shop.ask("GET", now)
            seen += try reply.json.array?.compactMap { $0["id"]?.integer } ?? []
            if !hasDeleted, let last = seen.last {
                #expect(try await shop.ask("DELETE", "/todos/\(last)").status == 204)
                hasDeleted = true
            }
            target = reply.field("Link").map { "/todos" + $0.dropFirst().prefix { $0 != ">" } }
        }
        #expect(seen == expected)
    }

    @Test(arguments: [
        ("_limit=0", "_limit"), ("_limit=1001", "_limit"), ("limit=x", "limit"), ("_page=0", "_page"),
        ("_start=-1", "_start"), ("cursor=abc", "cursor"), ("_order=up", "_order"), ("_sort=a..b", "_sort"),
        ("_embed=x", "_embed"), ("price_gte=cheap", "price_gte"), ("_page=1&_page=2", "_page"),
        ("limit=2&_page=1", "_page"),
    ])
    func `a bad parameter is a 400 that names it`(query: String, name: String) async throws {
        let reply = try await Shop().ask("GET", "/todos?" + query)
        #expect(reply.status == 400 && reply.field("Content-Type") == "application/problem+json")
        #expect(
            try reply.json["errors"]?[0]?["pointer"]?.string ?? reply.json["errors"]?[0]?["parameter"]?.string == name
        )
    }

    @Test func `a cursor of another list is rejected`() async throws {
        let shop = try CollectionShop()
        let link = try #require(try await shop.ask("GET", "/todos?_sort=id&limit=1").field("Link"))
        let cursor = try #require(link.split(separator: "cursor=").last?.prefix { $0 != "&" })
        #expect(try await shop.ask("GET", "/todos?_sort=id&cursor=\(cursor)").status == 200)
        #expect(try await shop.ask("GET", "/todos?_sort=-id&cursor=\(cursor)").problem == "invalid-cursor")
    }

    @Test func `documents are created, replaced, patched and deleted under conditions`() async throws {
        let shop = try CollectionShop()
        let made = try await shop.ask("POST", "/todos", #"{"title":"new"}"#)
        #expect(made.status == 201 && made.field("Location") == "/todos/8")
        #expect(made.body == Array(#"{"id":8,"title":"new"}"#.utf8))
        #expect(try await shop.ask("POST", "/todos", #"{"id":8}"#).problem == "document-exists")
        let tag = try #require(made.field("ETag"))
        #expect(try await shop.ask("GET", "/todos/8", nil, ["If-None-Match": tag]).status == 304)
        let patched = try await shop.ask("PATCH", "/todos/8", #"{"title":null,"by":{"name":"Di"}}"#, ["If-Match": tag])
        #expect(patched.body == Array(#"{"id":8,"by":{"name":"Di"}}"#.utf8))
        #expect(try await shop.ask("PUT", "/todos/8", "{}", ["If-Match": tag]).problem == "precondition-failed")
        #expect(try await shop.ask("PUT", "/todos/8", #"{"a":1}"#).body == Array(#"{"id":8,"a":1}"#.utf8))
        #expect(try await shop.ask("PATCH", "/todos/8", #"{"id":9}"#).status == 422)
        #expect(try await shop.ask("DELETE", "/todos/8", nil, ["If-Match": tag]).status == 412)
        #expect(try await shop.ask("DELETE", "/todos/8").status == 204)
        #expect(try await shop.ask("GET", "/todos/8").status == 404)
        // The number of a deleted document is not given again.
        #expect(try await shop.ask("POST", "/todos", "{}").field("Location") == "/todos/9")
        #expect(try await shop.ask("PUT", "/todos", "{}").field("Allow") == "GET, HEAD, OPTIONS, POST")
        #expect(try await shop.ask("GET", "/nothing").status == 404)
    }

    @Test func `text identifiers follow from the seed`() async throws {
        let files = ["notes.json": #"[{"id":"a b","x":1}]"#]
        let first = try await Shop(files).ask("POST", "/notes", "{}")
        let second = try await Shop(files).ask("POST", "/notes", "{}")
        #expect(first.body == second.body && first.field("Location")?.count == "/notes/".count + 16)
        #expect(try await Shop(files).ask("GET", "/notes/a%20b").status == 200)
    }

    @Test(arguments: [
        ("PUT", "/todos", "GET, HEAD, OPTIONS, POST"), ("PATCH", "/todos", "GET, HEAD, OPTIONS, POST"),
        ("POST", "/about", "GET, HEAD, OPTIONS, PATCH, PUT"), ("POST", "/todos/1/about", "GET, HEAD, OPTIONS"),
    ])
    func `a method that a path does not take is rejected before its body`(method: String, path: String, allow: String)
        async throws
    {
        let shop = try CollectionShop(["todos.json": CollectionShop.todos, "about.json": #"{"name":"x"}"#])
        for body in ["[]", "{", "{}"] {
            let reply = try await shop.ask(method, path, body)
            #expect(reply.status == 405 && reply.field("Allow") == allow, "\(body): \(reply.head)")
        }
        let options = try await shop.ask("OPTIONS", path)
        #expect(options.status == 204 && options.field("Allow") == allow)
    }

    @Test func `a repeated key creates one document`() async throws {
        let shop = try CollectionShop()
        let key = ["Idempotency-Key": "k-1"]
        let first = try await shop.ask("POST", "/todos", #"{"a":1}"#, key)
        let again = try await shop.ask("POST", "/todos", #"{"a":1}"#, key)
        #expect(first.body == again.body && again.field("Idempotent-Replayed") == "true")
        #expect(try await shop.ids("/todos").count == 5)
    }

    @Test func `the change feed tells of edits and deletions, and rejects a foreign token`() async throws {
        let shop = try CollectionShop()
        let start = try await shop.ask("GET", "/changes").json
        #expect(start["items"]?.array?.count == 4 && start["items"]?[0]?["type"]?.string == "todos")
        let token = try #require(start["nextToken"]?.string)
        _ = try await shop.ask("PATCH", "/todos/1", #"{"done":true}"#)
        _ = try await shop.ask("DELETE", "/todos/2")
        let items = try await shop.ask("GET", "/changes?since=\(token)").json["items"]?.array ?? []
        #expect(items.map { $0["id"]?.integer } == [1, 2] && items.map { $0["op"]?.string } == ["upsert", "delete"])
        #expect(items.first?["entity"]?["done"]?.bool == true)
        let foreign = try await shop.ask("GET", "/changes?since=abc")
        #expect(foreign.status == 410 && foreign.field("Location") == "/changes")
    }

    @Test func `a long poll whose token ends leads to the feed of the collections`() async throws {
        let shop = try CollectionShop()
        let world = shop.backend.main
        try world.takeSnapshot("s")
        _ = try await shop.ask("POST", "/todos", "{}")
        let token = try #require(try await shop.ask("GET", "/changes?since=now").json["nextToken"]?.string)
        let waiting = try shop.send("GET", "/changes?wait=30&since=\(token)")
        await reached { world.world.live.readerCount > 0 }
        try world.restore("s")
        let reply = try await waiting.reply()
        #expect(reply.status == 410 && reply.field("Location") == "/changes")
    }

    @Test func `live events tell of edits`() async throws {
        let shop = try CollectionShop()
        let client = try shop.send("GET", "/live")
        _ = try await client.read(until: "hello")
        _ = try await shop.ask("POST", "/todos", #"{"title":"seen live"}"#)
        _ = try await client.read(until: "seen live")
    }

    @Test(arguments: [(["a", "b"], ConductReport.Rule.keyChanged), (["", ""], .keyMissing), (["a", "a"], nil)])
    func `a POST that is sent again after its reply was lost needs its key`(
        _ keys: [String],
        _ rule: ConductReport.Rule?
    ) async throws {
        let shop = try CollectionShop()
        let world = try shop.backend.makeWorld(id: "other")
        var once = Fault.Occurrence()
        once.count = 1
        try world.set(Fault(id: "lose", .loseReply(.reset), when: FaultMatch("POST", "/todos"), occurrence: once))
        func send(_ key: String) throws -> RawClient {
            let fields = ["Larder-Device": "phone"].merging(key.isEmpty ? [:] : ["Idempotency-Key": key]) { $1 }
            return try shop.send("POST", "/w/other/todos", #"{"title":"once"}"#, fields)
        }
        #expect(await (try send(keys[0])).readToEnd().bytes.isEmpty)
        #expect(try await send(keys[1]).reply().status == 201)
        #expect(await world.conduct.findings.map(\.rule) == [rule].compactMap(\.self))
    }

    @Test func `faults, worlds, reset and journal work`() async throws {
        let shop = try CollectionShop()
        let world = try shop.backend.makeWorld(id: "other")
        try world.set(Fault(id: "lose", .loseReply(.reset), when: FaultMatch("POST", "/todos")))
        #expect(await (try shop.send("POST", "/w/other/todos", "{}")).readToEnd().bytes.isEmpty)
        #expect(try await shop.ids("/w/other/todos").count == 5)
        #expect(try await shop.ids("/todos").count == 4)
        #expect(await world.journal().map(\.faults) == [["lose"], []])
        #expect(try await shop.ask("POST", "/_larder/worlds/other/reset").status < 300)
        #expect(try await shop.ids("/w/other/todos").count == 4)
        #expect(try await shop.ask("POST", "/_larder/worlds", #"{"id":"none","from":"empty"}"#).status == 201)
        let empty = try await shop.ask("GET", "/w/none/todos")
        #expect(empty.status == 200 && empty.body == Array("[]".utf8))
    }

    @Test func `an act of another client and a wait for a value take any path`() async throws {
        let shop = try CollectionShop()
        let act = #"{"method": "PATCH", "path": "/todos/1", "body": {"title": "rye"}}"#
        #expect(try await shop.ask("POST", "/_larder/act", act).json["results"]?[0]?["status"]?.integer == 200)
        let state = #"{"state": {"path": "/todos/1", "pointer": "/title", "equals": "rye"}}"#
        #expect(try await shop.ask("POST", "/_larder/wait", state).status == 200)
    }

    @Test func `schema drift and the oracle of convergence are for any path`() async throws {
        let shop = try CollectionShop()
        let plain = try await shop.ask("GET", "/todos").text
        let truth = try await shop.ask("POST", "/_larder/oracles/converged", #"{"held": {"todos/1": 1}}"#)
        #expect(try truth.json["count"]?.integer == 3, "\(truth.text)")
        let vacuous = try await shop.ask("POST", "/_larder/oracles/converged", #"{"types": "post", "held": {}}"#)
        #expect(vacuous.status == 400 && vacuous.text.contains("is not for collections"), "\(vacuous.text)")
        #expect(try await shop.ask("PUT", "/_larder/drift", #"{"seed": 5}"#).status == 200)
        #expect(try await shop.ask("GET", "/todos").text != plain)
    }

    @Test func `a lagging replica shows an earlier list`() async throws {
        let shop = try CollectionShop()
        let lag = #"{"match":{"method":"GET","path":"/todos"},"action":{"type":"lag","commits":1}}"#
        #expect(try await shop.ask("POST", "/_larder/faults", lag).status == 201)
        _ = try await shop.ask("POST", "/todos", "{}")
        #expect(try await shop.ids("/todos").count == 4)
    }

    @Test func `a WebSocket is a live channel, too`() async throws {
        let client = try CollectionShop().send(
            "GET",
            "/live",
            nil,
            [
                "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            ]
        )
        #expect(String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self).hasPrefix("HTTP/1.1 101"))
        _ = try await client.read(until: "hello")
    }

    @Test func `a database keeps the documents`() async throws {
        let folder = try ScratchDirectory()
        let path = folder.path + "/data.sqlite"
        let first = try Shop { $0.databasePath = path }
        _ = try await first.ask("POST", "/todos", "{}")
        await first.backend.stop()
        let second = try Shop { $0.databasePath = path }
        #expect(try await second.ids("/todos") == [1, 2, 7, 4, 8])
        await second.backend.stop()
    }

    @Test func `the front page names the collections, and there is no description of the demo`() async throws {
        let shop = try Shop(["db.json": #"{"todos":\#(Shop.todos),"empty":[]}"#])
        #expect(shop.backend.collections == ["empty", "todos"])
        #expect(try await shop.ask("GET", "/").json["todos"]?.string == "/todos")
        #expect(try await shop.ask("GET", "/openapi.json").status == 404)
        #expect(try await shop.ask("POST", "/empty", "{}").field("Location") == "/empty/1")
    }

    @Test func `the echo is served beside collections, one of which may have its name`() async throws {
        let shop = try Shop(["echo.json": Shop.todos])
        let echo = try await shop.ask("GET", "/_larder/echo")
        #expect(echo.status == 200)
        #expect(try echo.json["target"]?.string == "/_larder/echo")
        #expect(try await shop.ids("/echo") == [1, 2, 7, 4])
    }

    @Test(
        arguments: [
            (["a.json": "[1"], "a.json:1: column 3: "),
            (["a.json": "3"], "a.json:1: must be an array of objects, such as [{\"id\": 1}]"),
            (["a.json": "[{\"id\":1},\n2]"], "a.json:2: /1 must be an object"),
            (["a.json": "[\n{}]"], "a.json:2: /0/id must be an integer or a text"),
            (
                ["a.json": "[{\"id\":1},\n{\"id\":\"1\"}]"],
                "a.json:2: /1/id is also that of /0; each document needs its own"
            ),
            (["a.json": "[{\n\"id\":true}]"], "a.json:2: /0/id must be an integer or a text"),
            (["db.json": "{\"b\":\n[{\"id\":null}]}"], "db.json:2: /b/0/id must be"),
            (["live.json": "[]"], "must have another name, because /live is a path of the server"),
            (["a b.json": "[]"], "must have a name of"), ([:], "has no collections"),
            (["db.json": "{}", "a.json": "[]"], "use one or the others"),
        ] as [([String: String], String)]
    )
    func `a bad file is named with the line and the member`(files: [String: String], message: String) throws {
        let folder = try Shop.directory(files)
        let error = #expect(throws: FileError.self) {
            _ = try MockBackend.start(.collections(directory: folder.path))
        }
        #expect(error?.description.contains(message) ?? false, "\(error?.description ?? "")")
    }

    @Test func `all errors of bad files are listed`() throws {
        let folder = try Shop.directory(["a.json": "[1,\n{\"id\": true}]", "b.json": "1", "c.json": "["])
        let error = #expect(throws: FileError.self) {
            _ = try MockBackend.start(.collections(directory: folder.path))
        }
        let lines = (error?.description ?? "").split(separator: "\n").map { $0.dropFirst(folder.path.count) }
        let expected = ["/a.json:1: /0 must be", "/a.json:2: /1/id must be", "/b.json:1: must be", "/c.json:1: column"]
        #expect(lines.count == 4 && zip(lines, expected).allSatisfy { $0.hasPrefix($1) }, "\(lines)")
    }

    @Test func `collections have a change feed and no ledger`() async throws {
        let shop = try CollectionShop()
        let ledger = try await shop.ask("GET", "/_larder/oracles/ledger")
        #expect(ledger.status == 400 && ledger.text.contains("this server has your own collections"))
        let fault = #"{"match":{"count":1},"action":{"type":"changes","page":"expired"}}"#
        #expect(try await shop.ask("POST", "/_larder/faults", fault).status == 201)
        let token = try await shop.ask("GET", "/changes?since=now").json["nextToken"]?.string ?? ""
        for status in [410, 200] { #expect(try await shop.ask("GET", "/changes?since=\(token)").status == status) }
    }

    @Test func `Allow has the methods that the path of a list, of a document and of a route takes`() async throws {
        let files = ["todos.json": CollectionShop.todos, "profile.json": #"{"name":"Ana"}"#]
        let shop = try CollectionShop(files)
        for (path, allow) in [
            ("/todos", "GET, HEAD, OPTIONS, POST"), ("/profile", "GET, HEAD, OPTIONS, PATCH, PUT"),
            ("/todos/1", "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"),
        ] { #expect(try await shop.ask("OPTIONS", path).field("Allow") == allow, "\(path)") }
        #expect(try await shop.ask("DELETE", "/todos").field("Allow") == "GET, HEAD, OPTIONS, POST")
        let data = try CollectionShop.directory(files)
        let routes = #"{"method": "POST", "path": "/login", "status": 204}"#
        let site = try RouteSite(routes: routes, .collections(directory: data.path))
        #expect(try await site.ask("OPTIONS", "/login").field("Allow") == "OPTIONS, POST")
    }

    @Test func `an unknown operator of a filter is an error`() async throws {
        let shop = try CollectionShop()
        let wrong = try await shop.ask("GET", "/todos?price:gtee=1")
        #expect(wrong.status == 400 && wrong.text.contains("did you mean :gte?"), "\(wrong.text)")
        #expect(try await shop.ids("/todos?price:gte=3") == [1, 7])
    }

    @Test(arguments: FaultAction.ValidatorFault.allCases)
    func `unreliable validators do not let a write overwrite what it must not`(mode: FaultAction.ValidatorFault)
        async throws
    {
        let shop = try CollectionShop()
        try shop.backend.main.set(Fault(.validators(mode), when: FaultMatch(nil, "/todos/*")))
        let reply = try await shop.ask("PUT", "/todos/1", #"{"title":"other"}"#, ["If-None-Match": "*"])
        #expect(reply.status == 412)
        #expect(try await shop.ask("GET", "/todos/1").json["title"]?.string == "flour")
    }
}

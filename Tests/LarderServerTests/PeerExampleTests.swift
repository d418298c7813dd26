import LarderCoding
import TestSupport
import Testing

@testable import LarderServer

/// The examples in the public documentation of json-server (README of 1.0 and 0.17) and Mockoon (templating, rules, responses, CRUD routes), as
/// data and routes. What has no counterpart is in `Documentation/OwnAPI.md`.
@Suite("Examples of other mock servers", .oneMinute)
struct PeerExampleTests {
    /// `db.json` of json-server's README.
    private static let database = """
        {"posts": [{"id": "1", "title": "a title", "views": 100}, {"id": "2", "title": "another title", "views": 200}],
         "comments": [{"id": "1", "text": "a comment about post 1", "postId": "1"},
                      {"id": "2", "text": "another comment about post 1", "postId": "1"}],
         "profile": {"name": "typicode"}}
        """

    private func shop() throws -> CollectionShop {
        try CollectionShop(["db.json": Self.database])
    }

    @Test(
        arguments: [
            ("/posts/1", #"{"id":"1","title":"a title","views":100}"#),
            ("/posts?views=100", "[1]"), ("/posts?views_gt=100", "[2]"), ("/posts?views:gt=100", "[2]"),
            ("/posts?views_gte=100&views_lt=200", "[1]"), ("/posts?title_ne=a%20title", "[2]"),
            ("/posts?id:in=1,3", "[1]"), ("/posts?title:contains=ANOTHER", "[2]"),
            ("/posts?title:startsWith=an", "[2]"),
            ("/posts?title:endsWith=title", "[1,2]"),
            ("/posts?_sort=title,-views", "[1,2]"), ("/posts?_sort=-views", "[2,1]"),
            ("/posts?_start=1&_end=2", "[2]"), ("/posts?_start=0&_limit=1", "[1]"),
            (
                "/posts?_page=1&_per_page=1",
                #"{"first":1,"prev":null,"next":2,"last":2,"pages":2,"items":2,"data":[{"id":"1","title":"a title","views":100}]}"#
            ),
            (
                "/posts?_page=2&_per_page=1",
                #"{"first":1,"prev":1,"next":null,"last":2,"pages":2,"items":2,"data":[{"id":"2","title":"another title","views":200}]}"#
            ),
            (#"/posts?_where={"or":[{"views":{"gt":150}},{"title":{"eq":"a%20title"}}]}"#, "[1,2]"),
            (#"/posts?_where={"views":{"gt":150},"title":{"contains":"title"}}"#, "[2]"),
            (#"/posts?_where={"not":{"id":{"in":["1"]}}}"#, "[2]"),
            ("/posts/1/comments", "[1,2]"), ("/posts/2/comments", "[]"),
            (
                "/comments/1?_embed=post",
                #"{"id":"1","text":"a comment about post 1","postId":"1","post":{"id":"1","title":"a title","views":100}}"#
            ),
            (
                "/comments/1?_expand=post",
                #"{"id":"1","text":"a comment about post 1","postId":"1","post":{"id":"1","title":"a title","views":100}}"#
            ),
            ("/posts?_sort=views&_order=desc", "[2,1]"), ("/posts?_sort=title,views&_order=desc,asc", "[2,1]"),
            ("/posts?id=1&id=2", "[1,2]"), ("/posts?title_like=another", "[2]"), ("/posts?q=another", "[2]"),
            ("/posts/1/comments?_start=1&_end=2", "[2]"), ("/posts?_page=1", "[1,2]"),
            ("/posts?title=a%20title&views=100", "[1]"), ("/posts?_page=2&_limit=1", "[2]"), ("/posts?id_ne=1", "[2]"),
            ("/posts?views_gte=100&views_lte=150", "[1]"), ("/posts/1/comments?_sort=text&_order=asc", "[1,2]"),
            ("/posts/1/comments?_start=1&_limit=1", "[2]"), ("/comments?_expand=post", "[1,2]"),
            ("/profile", #"{"name":"typicode"}"#),
        ]
    )
    func `requests of json-server's documentation`(target: String, expected: String) async throws {
        let shop = try shop()
        let target = target.replacing("\"", with: "%22").replacing("{", with: "%7B").replacing("}", with: "%7D")
        let reply = try await shop.ask("GET", target)
        #expect(reply.status == 200, "\(reply.text)")
        let ids = try reply.json.array?.map { $0["id"]?.string ?? "" }
        #expect((ids.map { "[\($0.joined(separator: ","))]" } ?? reply.text) == expected)
    }

    @Test
    func `json-server embeds children, creates them below their parent, deletes them with it, and has single objects`()
        async throws
    {
        let shop = try shop()
        let posts = try await shop.ask("GET", "/posts?_embed=comments").json
        #expect(posts[0]?["comments"]?.array?.count == 2 && posts[1]?["comments"]?.array?.isEmpty ?? false)
        // A new comment changes the representation of the post, whose date stays.
        shop.backend.main.clock.advance(by: .seconds(5))
        #expect(try await shop.ask("GET", "/posts/2").field("Last-Modified") != nil)
        #expect(try await shop.ask("GET", "/posts/2?_embed=comments").field("Last-Modified") == nil)
        let many = try await shop.ask("GET", "/posts?_embed=" + (1...9).map { "x\($0)" }.joined(separator: ","))
        #expect(many.status == 400 && many.text.contains("at most 8"))
        let created = try await shop.ask("POST", "/posts/2/comments", #"{"text":"new"}"#)
        #expect(created.status == 201)
        #expect(try created.json["postId"]?.string == "2")
        #expect(try await shop.ask("GET", "/posts/2/comments").json.array?.count == 1)
        #expect(try await shop.ask("DELETE", "/posts/1?_dependent=nothing").status == 404)
        #expect(try await shop.ask("DELETE", "/posts/1?_dependent=comments").status == 204)
        #expect(try await shop.ask("GET", "/comments").json.array?.map { $0["postId"] } == [.string("2")])
        #expect(try await shop.ask("PATCH", "/profile", #"{"age":3}"#).text == #"{"name":"typicode","age":3}"#)
        #expect(try await shop.ask("PUT", "/profile", #"{"name":"x"}"#).text == #"{"name":"x"}"#)
        #expect(try await shop.ask("POST", "/profile", "{}").status == 405)
        #expect(try await shop.ask("PUT", "/posts", "{}").status == 405)
        #expect(try await shop.ask("GET", "/posts/2/nothing").status == 404)
        #expect(try await shop.ask("GET", "/posts?_embed=nothing").status == 400)
        #expect(try await shop.ask("GET", "/posts?_where=x").status == 400)
    }

    // MARK: Mockoon

    /// "Templating overview" and "Request helpers": what the example says, and each helper that has a counterpart.
    @Test func `templates of Mockoon's documentation`() async throws {
        let routes = #"""
            {"path": "/user/{id}", "json": {
               "userId": "{{path.id}}", "name": "{{query.name \"John\"}}", "lang": "{{field.accept-language \"en\"}}",
               "elementTitle": "{{body.elements.0.title \"default\"}}", "method": "{{method}}", "hostname": "{{field.host}}",
               "friends": {"{{repeat 2}}": {"id": "{{index}}", "name": "{{fake firstName}} {{fake lastName}}"}},
               "oneItem": "{{pick \"item1\" \"item2\" \"item3\"}}"}},
            {"path": "/switch/{id}", "replies": [
               {"when": {"path.id": "1"}, "json": "John"}, {"when": {"path.id": "2"}, "json": "Jack"}, {"json": "Peter"}]},
            {"method": "POST", "path": "/body", "json": {"username": "{{body.users.0.username}}", "all": "{{body.users}}"}},
            {"method": "POST", "path": "/raw", "text": "{{body}}"},
            {"path": "/status", "when": {"query.code": "404"}, "status": 404, "text": ""},
            {"path": "/status", "text": "200"},
            {"path": "/headers/{id}", "fields": {"X-Id": "{{path.id}}"}, "text": ""},
            {"path": "/file/{id}", "replies": [{"when": {"path.id": "1"}, "file": "file1.html"}, {"file": "file2.html"}]},
            {"method": "POST", "path": "/vars", "set": {"varName": "{{body.id}}"}, "status": 204},
            {"path": "/vars", "json": "{{state.varName \"default value\"}}"}, {"path": "/inc", "json": "{{counter visits}}"}
            """#
        let site = try RouteSite([
            "routes.json": "{\"routes\": [\(routes)]}", "file1.html": "<p>1</p>", "file2.html": "<p>2</p>",
        ])
        let fields = ["Accept-Language": "fr-FR,fr;q=0.9"]
        let user = try await site.ask("GET", "/user/5?name=john", #"{"elements": [{"title": "My title"}]}"#, fields)
            .json
        let texts = ["userId", "name", "lang", "elementTitle", "method", "hostname"].map { user[$0]?.string }
        #expect(texts == ["5", "john", "fr-FR,fr;q=0.9", "My title", "GET", "127.0.0.1"])
        #expect(user["friends"]?.array?.compactMap { $0["id"]?.integer } == [0, 1])
        #expect(user["friends"]?[0]?["name"] != user["friends"]?[1]?["name"])
        #expect(["item1", "item2", "item3"].contains(user["oneItem"]?.string))
        let plain = try await site.ask("GET", "/user/5").json
        #expect(["name", "lang", "elementTitle"].map { plain[$0]?.string } == ["John", "en", "default"])
        for (id, name) in [("1", "John"), ("2", "Jack"), ("3", "Peter")] {
            #expect(try await site.text("GET", "/switch/" + id) == "\"\(name)\"")
        }
        let body = try await site.text("POST", "/body", #"{"users":[{"username":"john"}]}"#)
        #expect(body == #"{"username":"john","all":[{"username":"john"}]}"#)
        #expect(try await site.text("POST", "/raw", "a=1", ["Content-Type": "text/plain"]) == "a=1")
        #expect(try await site.text("GET", "/status?code=404") == "404")
        #expect(try await site.text("GET", "/status") == "200")
        #expect(try await site.ask("GET", "/headers/7").field("X-Id") == "7")
        #expect(try await site.text("GET", "/file/1") == "<p>1</p>")
        #expect(try await site.text("GET", "/file/2") == "<p>2</p>")
        #expect(try await site.text("GET", "/vars") == "\"default value\"")
        #expect(try await site.ask("POST", "/vars", #"{"id": "abc"}"#).status == 204)
        #expect(try await site.text("GET", "/vars") == "\"abc\"")
        #expect(try await [site.text("GET", "/inc"), site.text("GET", "/inc")] == ["1", "2"])
    }

    /// "Responses rules" and "Multiple responses": each target and operator that has a counterpart.
    @Test func `rules of Mockoon's documentation`() async throws {
        let site = try RouteSite(
            routes: #"""
                {"method": "POST", "path": "/rules/{userId}", "replies": [
                   {"when": {"body.user.0.name": "John", "field.accept-charset": {"matches": "UTF-.*"}}, "text": "and"},
                   {"when": {"query.filter": {"matches": "primary|secondary"}}, "text": "or"},
                   {"when": {"path.userId": {"matches": "^user[1-9]"}}, "text": "param"},
                   {"when": {"field.cookie": {"matches": "(^|; )Session-id=abc(;|$)"}}, "text": "cookie"},
                   {"when": {"body.tags[*]": "new"}, "text": "an item"}, {"when": {"body.list": []}, "text": "empty array"},
                   {"when": {"body.text": {"matches": "^$|\\s+"}}, "text": "empty"},
                   {"when": {"field.authorization": null}, "status": 401}, {"text": "default"}]},
                {"method": "POST", "path": "/raw", "when": {"body": {"matches": "^raw"}}, "text": "raw"},
                {"path": "/odd", "order": "cycle", "replies": [{"status": 500}, {"text": "even"}]},
                {"path": "/first", "order": "sequence", "replies": [{"status": 503}, {"status": 503}, {"status": 503}, {"text": "up"}]},
                {"path": "/any", "order": "random", "replies": [{"text": "a"}, {"status": 500}, {"status": 404}]}
                """#
        )
        let john = #"{"user":[{"name":"John"}]}"#
        let cases: [(String, String, [String: String], String)] = [
            ("/rules/1", john, ["Accept-Charset": "UTF-8"], "and"), ("/rules/1?filter=secondary", john, [:], "or"),
            ("/rules/user1-9", "{}", [:], "param"), ("/rules/1", "{}", ["Cookie": "a=b; Session-id=abc"], "cookie"),
            ("/rules/1", #"{"tags":["old","new"]}"#, [:], "an item"), ("/rules/1", #"{"list":[]}"#, [:], "empty array"),
            ("/rules/1", #"{"text":""}"#, [:], "empty"), ("/rules/1", "{}", [:], "401"),
            ("/rules/1", "{}", ["Authorization": "x"], "default"),
            ("/raw", "raw text", ["Content-Type": "text/plain"], "raw"),
        ]
        for (target, body, fields, expected) in cases {
            #expect(try await site.text("POST", target, body, fields) == expected, "\(target) \(body)")
        }
        var (odd, first, any) = ("", "", Set<String>())
        for _ in 0..<4 { odd += try await site.text("GET", "/odd") + " " }
        for _ in 0..<5 { first += try await site.text("GET", "/first") + " " }
        for _ in 0..<40 { any.insert(try await site.text("GET", "/any")) }
        #expect(odd == "500 even 500 even " && first == "503 503 503 up up " && any == ["a", "500", "404"])
    }

    /// "CRUD routes" over a data bucket: the collections of a file, with the names of json-server.
    @Test(
        arguments: [
            ("/users", "[1,2,3]"), ("/users?status=success", "[1,3]"), ("/users?status_ne=error", "[1,3]"),
            ("/users?price_gt=10", "[2]"), ("/users?price_gte=10", "[1,2]"), ("/users?price_lt=10", "[3]"),
            ("/users?price_lte=10", "[1,3]"), ("/users?name_like=ohn%20do", "[1]"),
            ("/users?name:startsWith=john", "[1,3]"),
            ("/users?name:endsWith=doe", "[1,2]"), ("/users?is_active=true", "[1]"),
            ("/users?user.email:endsWith=@example.com", "[1,3]"), ("/users?q=jane", "[2]"),
            ("/users?_sort=name&_order=desc", "[3,1,2]"), ("/users?_page=2&_limit=2", "[3]"),
            ("/users?_limit=1", "[1]"),
            ("/users?q=j&user.email:endsWith=@example.com&_sort=-name&_page=1&_limit=1", "[3]"),
        ]
    )
    func `lists of Mockoon's CRUD routes`(target: String, expected: String) async throws {
        let shop = try CollectionShop(["users.json": Self.users])
        let reply = try await shop.ask("GET", target)
        let ids = try reply.json.array?.map { $0["id"]?.string ?? "" } ?? []
        #expect("[\(ids.joined(separator: ","))]" == expected, "\(reply.text)")
        #expect(!target.contains("_limit=2") || reply.field("X-Total-Count") == "3")
    }

    private static let users = """
        [{"id": "1", "name": "John Doe", "status": "success", "price": 10, "is_active": true, "user": {"email": "john@example.com"}},
         {"id": "2", "name": "Jane Doe", "status": "error", "price": 20, "is_active": false, "user": {"email": "jane@example.org"}},
         {"id": "3", "name": "Johnny B.", "status": "success", "price": 5, "is_active": false, "user": {"email": "b@example.com"}}]
        """

    @Test func `changes by Mockoon's CRUD routes, and a route that overrides one`() async throws {
        let files = try CollectionShop.directory(["users.json": Self.users])
        let site = try RouteSite(
            ["routes.json": #"{"routes": [{"path": "/users/2", "json": {"id": "2", "name": "overridden"}}]}"#],
            .collections(directory: files.path)
        )
        #expect(try await site.text("GET", "/users/2") == #"{"id":"2","name":"overridden"}"#)
        let created = try await site.ask("POST", "/users", #"{"name": "New"}"#)
        #expect(created.status == 201)
        let id = try #require(created.json["id"]?.string)
        #expect(try await site.text("PUT", "/users/\(id)", #"{"name": "Newer"}"#) == #"{"id":"\#(id)","name":"Newer"}"#)
        let patched = try await site.text("PATCH", "/users/\(id)", #"{"age": 3}"#)
        #expect(patched == #"{"id":"\#(id)","name":"Newer","age":3}"#)
        #expect(try await site.ask("DELETE", "/users/\(id)").status == 204)
        #expect(try await site.ask("GET", "/users/\(id)").status == 404)
        // These replace or empty a whole list in Mockoon.
        for method in ["PUT", "PATCH", "DELETE"] {
            #expect(try await site.ask(method, "/users", "{}").status == 405)
        }
        withExtendedLifetime(files) {}
    }
}

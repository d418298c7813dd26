import LarderCoding
import TestSupport
import Testing

@testable import LarderServer

/// The examples in the public documentation of json-server (README of 1.0) and Mockoon (templating and rules), as data and routes.
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
        await shop.backend.stop()
    }

    @Test
    func `json-server embeds children, creates them below their parent, deletes them with it, and has single objects`()
        async throws
    {
        let shop = try shop()
        let posts = try await shop.ask("GET", "/posts?_embed=comments").json
        #expect(posts[0]?["comments"]?.array?.count == 2 && posts[1]?["comments"]?.array?.isEmpty ?? false)
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
        await shop.backend.stop()
    }

    @Test func `templates and rules of Mockoon's documentation`() async throws {
        // queryParam, urlParam, body, header, now, faker, repeat, and a rule on a path in the body; a sequence and a fallback.
        let site = try RouteSite(
            routes: #"""
                {"path": "/params/{id}", "json": {"id": "{{path.id}}", "page": "{{query.page \"1\"}}", "accept": "{{field.accept}}"}},
                {"method": "POST", "path": "/body", "json": {"username": "{{body.users.0.username}}", "all": "{{body.users}}"}},
                {"path": "/users", "json": {"{{repeat 2}}": {"friend": "{{fake firstName}} {{fake lastName}}", "n": "{{number 1 9}}"}}},
                {"method": "POST", "path": "/rules", "replies": [
                   {"when": {"body.user.0.name": "John", "field.accept-charset": {"matches": "^(?:UTF-8|Unicode)$"}}, "status": 201},
                   {"when": {"query.filter": {"exists": true}}, "status": 202}, {"status": 400, "problem": "default"}]},
                {"path": "/sequence", "order": "sequence", "replies": [{"status": 500}, {"text": "up"}]}
                """#
        )
        let params = try await site.text("GET", "/params/7", nil, ["Accept": "*/*"])
        #expect(params == #"{"id":"7","page":"1","accept":"*/*"}"#)
        let body = try await site.text("POST", "/body", #"{"users":[{"username":"john"}]}"#)
        #expect(body == #"{"username":"john","all":[{"username":"john"}]}"#)
        let users = try await site.ask("GET", "/users").json
        #expect(users.array?.count == 2 && users[0]?["friend"] != users[1]?["friend"])
        let john = #"{"user":[{"name":"John"}]}"#
        #expect(try await site.ask("POST", "/rules", john, ["Accept-Charset": "UTF-8"]).status == 201)
        #expect(try await site.ask("POST", "/rules?filter=a", john).status == 202)
        #expect(try await site.ask("POST", "/rules", john).status == 400)
        #expect(try await site.ask("GET", "/sequence").status == 500)
        #expect(try await site.text("GET", "/sequence") == "up")
        await site.backend.stop()
    }
}

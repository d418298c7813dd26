import LarderBackend
import LarderCoding
import LarderHTTP
import TestSupport
import Testing

@testable import LarderServer

@Suite("Requests and replies checked against an OpenAPI description", .oneMinute)
struct ContractTests {
    private static let contract = """
        openapi: 3.1.0
        servers: [{url: "https://books.test/v1"}]
        paths:
          /books:
            parameters:
              - {name: limit, in: query, required: true, schema: {type: integer, maximum: 50}}
            get:
              responses:
                "200":
                  headers: {X-Total: {required: true, schema: {type: integer}}}
                  content:
                    application/json:
                      schema: {type: array, items: {$ref: "#/components/schemas/Book"}}
          /books/new:
            get: {responses: {204: {description: nothing}}}
          /books/{id}:
            parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
            get:
              parameters: [{name: X-Reader, in: header, required: true, schema: {pattern: "^r[0-9]+$"}}]
              responses:
                2XX: {content: {application/json: {schema: {$ref: "#/components/schemas/Book"}}}}
                404: {content: {application/problem+json: {}}}
            put:
              requestBody:
                required: true
                content: {application/json: {schema: {$ref: "#/components/schemas/Book"}}}
              responses: {200: {content: {application/json: {schema: {$ref: "#/components/schemas/Book"}}}}}
        components:
          schemas:
            Book:
              type: object
              required: [id, title]
              additionalProperties: false
              properties:
                id: {type: integer, readOnly: true}
                title: {type: string, minLength: 1}
                kind: {enum: [novel, poem]}
                price: {type: [number, "null"], exclusiveMinimum: 0}
                secret: {type: string, writeOnly: true}
        """

    /// A server with these replies to `GET /books/1`, each once, and to other requests.
    private static func makeSite(_ replies: [String], contract: String? = contract) throws -> RouteSite {
        let routes = """
            {"path": "/books", "json": []},
            {"path": "/books/new", "status": 204},
            {"path": "/books/1", "order": "sequence", "replies": [\(replies.joined(separator: ", "))]},
            {"method": "PUT", "path": "/books/{id}", "json": {"id": 1, "title": "Emma"}},
            {"path": "/books/{id}", "status": 404, "problem": "There is no such book."},
            {"path": "/other", "text": "x"}, {"method": "DELETE", "path": "/books/1", "status": 204}
            """
        var files = ["routes.json": "{\"routes\": [\(routes)]}"]
        files["contract.yaml"] = contract
        let directory = try CollectionShop.directory(files)
        return try RouteSite(["routes.json": files["routes.json"] ?? ""]) {
            if contract != nil { $0.contract = directory.path + "/contract.yaml" }
        }
    }

    /// The findings of the conduct report, without the target before each.
    private static func findings(_ site: RouteSite) async throws -> [String] {
        let report = try await site.ask("GET", "/_larder/conduct").json
        return (report["findings"]?.array ?? []).filter { $0["rule"]?.string == "contractBroken" }.compactMap {
            $0["detail"]?.string.map { String($0.split(separator: " ", maxSplits: 1)[1]) }
        }
    }

    @Test(arguments: [
        ("GET", "/other", nil, "request: the path is not described"),
        ("DELETE", "/books/1", nil, "request: the path takes GET, PUT, not DELETE"),
        ("GET", "/books/x", nil, "request: the path parameter `id` must be an integer, not a string"),
        (
            "GET", "/books/2", "X-Reader: x",
            "request: the header parameter `X-Reader` does not match the pattern ^r[0-9]+$"
        ),
        ("GET", "/books/2", "", "request: the header parameter `X-Reader` is missing"),
        ("PUT", "/books/1", "{", "request: the body is not JSON"),
        ("PUT", "/books/1", #"{"title": 1}"#, "request: /title must be a string, not an integer"),
        ("PUT", "/books/1", "{}", "request: /title is missing"),
        ("PUT", "/books/1", #"{"title": "E", "x": 1}"#, "request: /x is not described"),
        ("PUT", "/books/1", #"{"title": "E", "kind": "play"}"#, #"request: /kind must be one of "novel", "poem""#),
        ("PUT", "/books/1", #"{"title": "E", "price": 0}"#, "request: /price must be above 0"),
        ("PUT", "/books/1", nil, "request: the body is missing"),
        ("PUT", "/books/1", "text", "request: the content type text/plain is not described; it has application/json"),
    ])
    func `a request that breaks one rule has one finding`(
        method: String,
        target: String,
        body: String?,
        finding: String
    )
        async throws
    {
        let site = try Self.makeSite([#"{"json": {"id": 1, "title": "E"}}"#])
        var fields = ["X-Reader": "r1"]
        var body = body
        if method == "GET", let field = body {
            fields["X-Reader"] = field.isEmpty ? nil : String(field.dropFirst("X-Reader: ".count))
            body = nil
        }
        if body == "text" { fields["Content-Type"] = "text/plain" }
        _ = try await site.ask(method, target, body, fields)
        let found = try await Self.findings(site)
        #expect(found.count == 1 && found[0].hasPrefix(finding), "\(found)")
    }

    @Test(arguments: [
        (#"{"status": 201, "json": {"id": 1, "title": "E"}}"#, ""),
        (#"{"status": 500, "json": {}}"#, "reply 500: the status is not described; the operation has 2XX, 404"),
        (#"{"text": "E"}"#, "reply 200: the content type text/plain is not described; it has application/json"),
        (#"{"text": "E", "mediaType": "application/json"}"#, "reply 200: the body is not JSON"),
        (#"{"text": "", "mediaType": "application/json"}"#, "reply 200: the body is missing"),
        (#"{"json": {"id": 1}}"#, "reply 200: /title is missing"),
        (#"{"json": {"title": "E"}}"#, "reply 200: /id is missing"),
        (#"{"json": {"id": 1.5, "title": "E"}}"#, "reply 200: /id must be an integer, not a number"),
        (#"{"json": {"id": 1, "title": ""}}"#, "reply 200: /title is shorter than 1 characters"),
        (
            #"{"json": {"id": 1, "title": "E", "price": "1"}}"#,
            "reply 200: /price must be a number or null, not a string"
        ),
        (#"{"json": [1]}"#, "reply 200: the body must be an object, not an array"),
    ])
    func `a reply that breaks one rule has one finding`(reply: String, finding: String) async throws {
        let site = try Self.makeSite([reply])
        _ = try await site.ask("GET", "/books/1", nil, ["X-Reader": "r1", "Accept-Encoding": "gzip"])
        let found = try await Self.findings(site)
        #expect(finding.isEmpty ? found.isEmpty : found.count == 1 && found[0].hasPrefix(finding), "\(found)")
        // The same sentence is in the journal, and the text of the report names its rule.
        let verdicts = try await site.ask("GET", "/_larder/journal/1").json["verdicts"]?.array ?? []
        let told = verdicts.filter { $0["rule"]?.string == "contractBroken" }
        #expect(told.compactMap { $0["text"]?.string } == found)
        let text = try await site.ask("GET", "/_larder/conduct", nil, ["Accept": "text/plain"]).text
        #expect(text.contains("contractBroken: 1") != finding.isEmpty)
    }

    @Test func `what the description allows has no finding, and each parameter is checked`() async throws {
        let site = try Self.makeSite([#"{"json": {"id": 1, "title": "E", "price": null, "kind": "poem"}}"#])
        let reader = ["X-Reader": "r1"]
        _ = try await site.ask("GET", "/v1/books/new")
        _ = try await site.ask("HEAD", "/books/1", nil, reader)
        let tag = try #require(try await site.ask("GET", "/books/1", nil, reader).field("ETag"))
        let again = try await site.ask("GET", "/books/1", nil, ["X-Reader": "r1", "If-None-Match": tag])
        #expect(again.status == 304)
        _ = try await site.ask("GET", "/books/9", nil, reader)
        _ = try await site.ask("PUT", "/books/1", #"{"title": "E", "secret": "s"}"#)
        _ = try await site.ask("OPTIONS", "/books/1")
        // The path of the description's server has no route, which its operation does not describe.
        #expect(try await Self.findings(site) == ["reply 404: the status is not described; the operation has 204"])
        _ = try await site.ask("GET", "/books?limit=51")
        _ = try await site.ask("GET", "/books")
        #expect(
            try await Self.findings(site).dropFirst() == [
                "request: the query parameter `limit` is above the maximum 50",
                "reply 200: the field `X-Total` is missing",
                "request: the query parameter `limit` is missing", "reply 200: the field `X-Total` is missing",
            ]
        )
    }

    @Test func `replies of a server behind the proxy are checked before faults change them`() async throws {
        let server = try Self.makeSite([#"{"json": {"id": 1}}"#], contract: nil)
        let directory = try CollectionShop.directory(["contract.yaml": Self.contract])
        let url = try #require(HTTPURL(server.backend.url))
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.contract = directory.path + "/contract.yaml"
        }
        _ = try await proxy.ask(
            "POST",
            "/_larder/faults",
            #"{"match": {"path": "/books/1"}, "action": {"type": "truncate", "byte": 3}}"#
        )
        let client = try RawClient(port: proxy.backend.port)
        try client.send("GET /books/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Reader: r1\r\n\r\n")
        _ = await client.readToEnd()
        let report = try await proxy.ask("GET", "/_larder/conduct").json
        #expect(report["counts"]?["contractBroken"]?.integer == 1)
        #expect(report["findings"]?[0]?["detail"]?.string == "/books/1: reply 200: /title is missing")
    }

    @Test func `a description that is no OpenAPI, or has a pattern that cannot be checked, is told`() throws {
        let directory = try CollectionShop.directory(["a.yaml": "a: 1", "b.yaml": "paths:\n  /a: *x\n"])
        for (name, expected) in [("a.yaml", "with `paths`"), ("b.yaml", "b.yaml:2: "), ("c.yaml", "c.yaml")] {
            var configuration = MockBackend.Configuration()
            configuration.contract = directory.path + "/" + name
            let error = #expect(throws: FileError.self) { _ = try MockBackend.start(.empty, configuration) }
            #expect(error?.description.contains(expected) ?? false, "\(error?.description ?? "")")
        }
        let text = #"{"paths": {"/a": {"get": {"parameters": [{"schema": {"pattern": "(?=x)"}}]}}}}"#
        let root = try OpenAPIDocument.value(Array(text.utf8), named: "x.json")
        #expect(try Contract(OpenAPIDocument(root: root), named: "x.json").warnings.first?.contains("(?=x)") ?? false)
    }

    private func findings(_ value: String, _ schema: String) throws -> [String] {
        func json(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }
        var check = JSONSchema(OpenAPIDocument(root: .null), .reply)
        check.check(try json(value), try json(schema), at: "")
        return check.findings
    }

    @Test func `every price is a multiple of a cent, and half a cent is not`() throws {
        for cents in 1...9_999 {
            let price = "\(cents / 100).\(cents % 100 < 10 ? "0" : "")\(cents % 100)"
            #expect(try findings(price, #"{"multipleOf": 0.01}"#) == [], "\(price)")
        }
        let wrong = [("0.355", "0.01"), ("7", "2"), ("1000000000000001", "2"), ("99.994", "0.01"), ("0.1", "0.25")]
        for (value, step) in wrong {
            #expect(try findings(value, "{\"multipleOf\": \(step)}").count == 1, "\(value)")
        }
    }

    @Test(arguments: [
        (#"{"url": "https://api.example.com/{version}", "variables": {"version": {"default": "v2"}}}"#, "/v2"),
        (
            #"{"url": "https://{name}.example.com:{port}/v1/", "variables": {"name": {"default": "a"}, "port": {"default": "8443"}}}"#,
            "/v1"
        ), (#"{"url": "/api"}"#, "/api"),
    ])
    func `the variables of a server have their defaults`(_ server: String, _ base: String) throws {
        let root = try JSONParser.parse(Array("{\"servers\": [\(server)]}".utf8))
        #expect(OpenAPIDocument(root: root).basePaths == [base])
    }

    @Test func `what the proxy answers itself is not the server's contract`() async throws {
        let port = try ClosedPort()
        let directory = try CollectionShop.directory(["contract.yaml": Self.contract])
        let url = try #require(HTTPURL("http://127.0.0.1:\(port.port)"))
        let proxy = try Stage {
            $0.origin = .server(url)
            $0.contract = directory.path + "/contract.yaml"
        }
        #expect(try await proxy.ask("GET", "/books/1", fields: ["X-Reader": "r1"]).status == 502)
        #expect(await proxy.world.conduct.findings.isEmpty)
    }
}

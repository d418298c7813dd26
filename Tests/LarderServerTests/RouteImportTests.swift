import LarderBackend
import LarderCoding
import TestSupport
import Testing

@testable import LarderServer

@Suite("Routes from other files", .oneMinute)
struct RouteImportTests {
    private func makeSite(_ text: String, named name: String) throws -> RouteSite {
        let routes = try RouteImport.routes(from: Array(text.utf8), named: name).document
        return try RouteSite(["routes.json": String(decoding: routes, as: UTF8.self)])
    }

    @Test func `an OpenAPI description becomes routes with examples, else with values of the schemas`() async throws {
        let site = try makeSite(
            """
            {"openapi": "3.1.0", "paths": {
              "/pets/{id}": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}}}},
              "/pets/first": {"get": {"responses": {"200": {"content": {"application/json": {"example": {"id": 1}}}}}}},
              "/pets": {"post": {"responses": {"201": {"description": "made"}}}}},
             "components": {"schemas": {"Pet": {"type": "object", "properties": {
               "id": {"type": "integer", "minimum": 5, "maximum": 5}, "name": {"type": "string"}, "kind": {"enum": ["cat"]},
               "tags": {"type": "array", "items": {"type": ["string", "null"]}}, "parent": {"$ref": "#/components/schemas/Pet"}}}}}}
            """,
            named: "openapi.json"
        )
        #expect(try await site.text("GET", "/pets/first") == #"{"id":1}"#)
        let pet = try await site.ask("GET", "/pets/7").json
        #expect(pet["id"]?.integer == 5 && pet["kind"]?.string == "cat" && pet["tags"]?[0]?.string != nil)
        #expect(try await site.ask("POST", "/pets", "{}").status == 201)
    }

    @Test func `values of schemas keep their bounds, so that the contract of the same description holds`() async throws
    {
        let description = """
            paths:
              /a:
                get:
                  responses:
                    "200":
                      content:
                        application/json:
                          schema:
                            type: object
                            required: [id, tags, unknown]
                            allOf: [{type: object, properties: {part: {type: string}}}]
                            properties:
                              id: {type: integer, minimum: 5000}
                              negative: {type: integer, maximum: -3}
                              above: {type: integer, exclusiveMinimum: 7, maximum: 8}
                              flag: {type: integer, minimum: 7, exclusiveMinimum: true, maximum: 8}
                              share: {type: number, minimum: 0.25, maximum: 0.75}
                              weight: {type: number, minimum: 2.5}
                              large: {type: integer, minimum: 1, maximum: 9223372036854775807}
                              kind: {allOf: [{type: string, enum: [cat]}], description: text}
                              day: {type: string, format: date, minLength: 10, maxLength: 10}
                              code: {type: string, minLength: 2, maxLength: 2}
                              long: {type: string, minLength: 40}
                              tags: {type: array, minItems: 2, maxItems: 3, items: {type: string}}
                              none: {type: array, maxItems: 0, items: {type: string}}
            """
        let folder = try CollectionShop.directory(["openapi.yaml": description])
        let routes = try RouteImport.routes(from: Array(description.utf8), named: "openapi.yaml").document
        let site = try RouteSite(["routes.json": String(decoding: routes, as: UTF8.self)]) { configuration in
            configuration.contract = folder.path + "/openapi.yaml"
        }
        let reply = try await site.ask("GET", "/a")
        #expect(try reply.json["tags"]?.array?.count == 2 && reply.json["unknown"] != nil, "\(reply.text)")
        #expect(String(decoding: routes, as: UTF8.self).contains("{{number 5000 5999}}"))
        let verdicts = try await site.ask("GET", "/_larder/journal").text
        #expect(!verdicts.contains("contractBroken"), "\(reply.text) \(verdicts)")
    }

    @Test func `routes are below the path of the server, and a schema that contains itself ends`() async throws {
        let description = """
            openapi: 3.0.3
            servers: [{url: "https://api.example.com/v2/"}]
            paths:
              /pets:
                get:
                  responses:
                    "200": {content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
            components:
              schemas:
                Pet:
                  type: object
                  required: [id]
                  properties:
                    id: {type: integer, minimum: 1, maximum: 1}
                    parent: {$ref: "#/components/schemas/Pet"}
                    young: {type: array, items: {$ref: "#/components/schemas/Pet"}}
            """
        let site = try makeSite(description, named: "openapi.yaml")
        #expect(try await site.text("GET", "/v2/pets") == #"{"id":1,"young":[]}"#)
    }

    @Test(arguments: [
        (#"{"swagger": "2.0", "paths": {"/a": {}}}"#, "Swagger 2.0"),
        (##"{"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": {"$ref": "#/b"}}}}}}"##, "has no #/b"),
    ])
    func `a description that cannot be understood is refused`(text: String, expected: String) {
        let error = #expect(throws: FileError.self) {
            try RouteImport.routes(from: Array(text.utf8), named: "a.json")
        }
        #expect(error?.description.contains(expected) ?? false, "\(error?.description ?? "")")
    }

    @Test func `an HTTP archive becomes routes with its replies`() async throws {
        let site = try makeSite(
            """
            {"log": {"entries": [
              {"request": {"method": "GET", "url": "http://x.test/a"},
               "response": {"status": 200, "content": {"mimeType": "text/html", "text": "Hello {{ name }}!"}}},
              {"request": {"method": "GET", "url": "http://x.test/%7Bid%7D"},
               "response": {"status": 200, "content": {"mimeType": "text/plain", "text": "no template"}}},
              {"request": {"method": "GET", "url": "http://x.test/a?q=1"},
               "response": {"status": 200, "content": {"mimeType": "application/json", "text": "{\\"n\\":1}"}}},
              {"request": {"method": "GET", "url": "http://x.test/a?q=2"},
               "response": {"status": 404, "content": {"mimeType": "text/plain", "text": "none"}}}]}}
            """,
            named: "recording.har"
        )
        #expect(try await site.text("GET", "/a?q=1") == #"{"n":1}"#)
        #expect(try await site.ask("GET", "/a?q=2").text == "none")
        #expect(try await site.text("GET", "/a") == "Hello {{ name }}!")
        #expect(try await site.ask("GET", "/").status == 404)
    }

    private func archive(_ entries: [(method: String, url: String, response: String)]) -> String {
        let entries = entries.map {
            #"{"request":{"method":"\#($0.method)","url":"\#($0.url)"},"response":{\#($0.response)}}"#
        }
        return #"{"log":{"entries":[\#(entries.joined(separator: ","))]}}"#
    }

    private func text(_ text: String, status: Int = 200) -> String {
        #""status":\#(status),"content":{"mimeType":"text/plain","text":"\#(text)"}"#
    }

    @Test func `different replies of an archive to one request are a sequence of its own`() async throws {
        let site = try makeSite(
            archive([
                ("GET", "http://x.test/n", text("1")), ("GET", "http://x.test/n?b=2&a=1", text("3")),
                ("GET", "http://x.test/n", text("2", status: 500)), ("GET", "http://x.test/n?a=1&b=2", text("4")),
                ("GET", "http://x.test/n", text("2", status: 500)),
            ]),
            named: "recording.har"
        )
        for (status, number) in [(200, "3"), (200, "4"), (200, "4")] {
            let reply = try await site.ask("GET", "/n?a=1&b=2")
            #expect(reply.status == status && reply.text == number)
        }
        for (status, number) in [(200, "1"), (500, "2"), (500, "2")] {
            let reply = try await site.ask("GET", "/n")
            #expect(reply.status == status && reply.text == number)
        }
    }

    @Test func `a body of an archive that is no text is kept, and text in Base64 is text`() async throws {
        func content(_ type: String, _ base64: String) -> String {
            #""status":200,"content":{"mimeType":"\#(type)","encoding":"base64","text":"\#(base64)"}"#
        }
        let text = archive([
            ("GET", "http://x.test/pic", content("image/png", "iVBORw0KGgo=")),
            ("GET", "http://x.test/json", content("application/problem+json", "eyJhIjoxfQ==")),
        ])
        let site = try makeSite(text, named: "recording.har")
        let picture = try await site.ask("GET", "/pic")
        #expect(picture.body == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        #expect(picture.field("Content-Type") == "image/png")
        let json = try await site.ask("GET", "/json")
        #expect(json.text == #"{"a":1}"# && json.field("Content-Type") == "application/problem+json")
        let damaged = archive([("GET", "http://x.test/pic", content("image/png", "iVBO*"))])
        let error = #expect(throws: FileError.self) {
            try RouteImport.routes(from: Array(damaged.utf8), named: "recording.har")
        }
        #expect(error?.description.contains("/log/entries/0/response/content") ?? false)
    }

    @Test(arguments: [
        ("http://x.test:28104/b?c=1#top", "/b?c=1#top"), ("https://api.test/b", "/b"), ("//api.test/b", "//api.test/b"),
        ("https://other.test/b", "https://other.test/b"), ("/b", "/b"),
        // Relative, it would lead to itself.
        ("https://api.test/a", "https://api.test/a"),
    ])
    func `a Location of an archive stays with the routes if its server was recorded`(
        location: String,
        expected: String
    ) async throws {
        let headers = #""headers":[{"name":"location","value":"\#(location)"}]"#
        let site = try makeSite(
            archive([
                ("GET", "http://x.test:28104/a", #""status":302,\#(headers)"#),
                ("GET", "https://api.test/x", text("x")),
            ]),
            named: "recording.har"
        )
        #expect(try await site.ask("GET", "/a").field("Location") == expected)
    }

    @Test func `what of an archive is in no route is counted with its reason`() async throws {
        let entries = archive([
            ("GET", "http://x.test/a", text("a")), ("OPTIONS", "http://x.test/a", text("")),
            ("GET", "http://x.test/b", #""status":0"#), ("GET", "http://x.test/a", #""status":304"#),
            ("GET", "http://x.test/a%7Bb%7D", text("b")), ("GET", "http://x.test/:id", text("b")),
            ("M-SEARCH", "http://x.test/a", text("b")), ("GET", "http://x.test/a%2Fb", text("b")),
            ("GET", "http://x.test/_larder", text("b")), ("GET", "http://x.test/a?%zz", text("b")),
            ("GET", "ws://x.test/live", #""status":101"#),
            ("GET", "http://x.test/lost", #""status":200,"content":{"size":3}"#),
            ("GET", "http://x.test/coded", #""status":200,"content":{"size":3,"text":"x","_isCoded":true}"#),
            ("GET", "http://x.test/bad", #""status":200,"content":{"mimeType":"application/json","text":"{"}"#),
        ])
        let (document, omitted) = try RouteImport.routes(from: Array(entries.utf8), named: "x.har")
        #expect(
            omitted == """
                x.har: left out: OPTIONS, which the server answers (1, first OPTIONS /a); \
                replies with status 0 (1, first GET /b); replies with status 304 (1, first GET /a); \
                requests that no route can express (6, first GET /a%7Bb%7D); \
                requests without an http or https URL (1, first GET ws://x.test/live); \
                bodies that are missing or not decoded (2, first GET /lost); \
                invalid JSON, which stays as it is (1, first GET /bad)
                """
        )
        let site = try RouteSite(["routes.json": String(decoding: document, as: UTF8.self)])
        #expect(try await site.text("GET", "/bad") == "{")
        #expect(
            try RouteImport.routes(from: Array(archive([("GET", "http://x/", text("x"))]).utf8), named: "x").omitted
                == nil
        )
        let error = #expect(throws: FileError.self) {
            let only = archive([("GET", "http://x.test/b", #""status":0"#)])
            _ = try RouteImport.routes(from: Array(only.utf8), named: "x.har")
        }
        #expect(error?.description.contains("replies with status 0 (1") ?? false)
    }

    @Test(arguments: [
        ("openapi: 3.1.0", "openapi.yaml", "neither"), ("a:\n\tb: 1", "openapi.yaml", "openapi.yaml:2: "),
        ("{}", "x.json", "neither"),
        ("{\"paths\": {}}", "x.json", "no reply"),
    ])
    func `another file is a sentence`(text: String, name: String, expected: String) {
        let error = #expect(throws: FileError.self) { _ = try RouteImport.routes(from: Array(text.utf8), named: name) }
        #expect(error?.description.contains(expected) ?? false, "\(error?.description ?? "")")
    }

    private func posts(_ entries: [(data: String, reply: String)]) -> String {
        let entries = entries.map { data, reply in
            #"{"request":{"method":"POST","url":"http://x.test/login"\#(data)},"response":{\#(text(reply))}}"#
        }
        return #"{"log":{"entries":[\#(entries.joined(separator: ","))]}}"#
    }

    private func body(_ text: String, _ type: String = "application/json") -> String {
        let text = String(decoding: JSONValue.string(text).encoded, as: UTF8.self)
        return #","postData":{"mimeType":"\#(type)","text":\#(text)}"#
    }

    @Test func `requests of an archive with different bodies are different requests`() async throws {
        let document = posts([
            (body(#"{"u":"good","n":1}"#), "token"), (body(#"{"u":"bad","n":1}"#), "none"),
            (body(#"{"u":"good","n":1}"#), "token 2"), (body(#"{"n":1}"#), "who"),
        ])
        let (routes, omitted) = try RouteImport.routes(from: Array(document.utf8), named: "x.har")
        #expect(omitted == nil && String(decoding: routes, as: UTF8.self).contains(#""when":{"body.u":"good"}"#))
        let site = try RouteSite(["routes.json": String(decoding: routes, as: UTF8.self)])
        for (sent, answer) in [
            (#"{"u":"bad"}"#, "none"), (#"{ "u": "good" }"#, "token"), (#"{"u":"good"}"#, "token 2"),
            (#"{"u":"other"}"#, "404"), ("{}", "who"),
        ] { #expect(try await site.text("POST", "/login", sent) == answer, "\(sent)") }
    }

    @Test func `texts, forms, lists and missing bodies of an archive are told apart`() async throws {
        let site = try makeSite(
            posts([
                (body("[1]"), "list"), (body("one", "text/plain"), "text"), ("", "nothing"),
                (body(#"{"b":2,"a":null}"#), "object"),
            ]),
            named: "recording.har"
        )
        for (sent, answer) in [("[1]", "list"), ("one", "text"), (nil, "nothing"), (#"{"a":null,"b":2}"#, "object")] {
            #expect(try await site.text("POST", "/login", sent) == answer, "\(sent ?? "")")
        }
        let form = "application/x-www-form-urlencoded"
        let forms = try makeSite(posts([(body("u=a", form), "A"), (body("u=b", form), "B")]), named: "recording.har")
        #expect(try await forms.text("POST", "/login", "u=b", ["Content-Type": form]) == "B")
        let bytes = #","postData":{"mimeType":"image/png","encoding":"base64","text":"/w=="}"#
        let binary = posts([(bytes, "A"), (body("u"), "B")])
        let omitted = try RouteImport.routes(from: Array(binary.utf8), named: "x.har").omitted
        #expect(omitted == "x.har: left out: conditions on a body that is no text (1, first POST /login)")
    }

    @Test func `a file of another kind is neither a description nor an archive`() {
        let error = #expect(throws: FileError.self) {
            try RouteImport.routes(from: Array("GET /a\n  POST /b\n c".utf8), named: "play.log")
        }
        #expect(error?.description.contains("neither") ?? false, "\(error?.description ?? "")")
    }
}

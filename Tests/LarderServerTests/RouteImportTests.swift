import LarderBackend
import LarderCoding
import TestSupport
import Testing

@testable import LarderServer

@Suite("Routes from other files", .oneMinute)
struct RouteImportTests {
    private func makeSite(_ text: String, named name: String) throws -> RouteSite {
        let routes = try RouteImport.routes(from: Array(text.utf8), named: name)
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
        let routes = try RouteImport.routes(from: Array(description.utf8), named: "openapi.yaml")
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

    @Test(arguments: [
        ("openapi: 3.1.0", "openapi.yaml", "neither"), ("a:\n\tb: 1", "openapi.yaml", "openapi.yaml:2: "),
        ("{}", "x.json", "neither"),
        ("{\"paths\": {}}", "x.json", "no reply"),
    ])
    func `another file is a sentence`(text: String, name: String, expected: String) {
        let error = #expect(throws: FileError.self) { _ = try RouteImport.routes(from: Array(text.utf8), named: name) }
        #expect(error?.description.contains(expected) ?? false, "\(error?.description ?? "")")
    }
}

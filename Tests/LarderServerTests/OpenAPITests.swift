import LarderCoding
import LarderHTTP
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("OpenAPI", .oneMinute)
struct OpenAPITests {
    private func document() throws -> JSONValue { try JSONParser.parse(EmbeddedDocument.openapi.bytes) }

    @Test func `the description and the router have the same operations`() throws {
        let paths = try #require(try document()["paths"]?.object)
        let described = paths.members.flatMap { path in
            (path.value.object?.members ?? []).map { "\($0.name.uppercased()) \(path.name)" }
        }
        let served = APIRoutes.all.map(\.name)
        #expect(Set(described) == Set(served))
        #expect(described.count == served.count)
    }

    @Test func `every reference can be resolved`() throws {
        let document = try document()
        var references: [String] = []
        collect(document, &references)
        #expect(references.count > 100)
        for reference in Set(references) {
            let found = reference.dropFirst(2).split(separator: "/").reduce(Optional(document)) { $0?[String($1)] }
            #expect(found != nil, "\(reference)")
        }
    }

    @Test func `every problem type is explained, and those of the API are listed`() {
        for type in ProblemType.allCases {
            #expect(!type.title.isEmpty && !type.explanation.isEmpty && type.status.code >= 400, "\(type)")
        }
        let text = String(decoding: EmbeddedDocument.openapi.bytes, as: UTF8.self)
        for type in ProblemType.allCases.prefix(while: { $0 != .limitReached }) {
            #expect(text.contains("\"/problems/\(type.name)\""), "\(type.name)")
        }
    }

    private func operations() throws -> [(name: String, value: JSONValue)] {
        (try document()["paths"]?.object?.members ?? []).flatMap { path in
            (path.value.object?.members ?? []).map { ("\($0.name) \(path.name)", $0.value) }
        }
    }

    /// The parameters of an operation, those in the components included.
    private func parameters(_ operation: JSONValue) throws -> [JSONValue] {
        let document = try document()
        return try (operation["parameters"]?.array ?? []).map { parameter in
            guard let reference = parameter["$ref"]?.string else { return parameter }
            return try #require(document.value(at: String(reference.dropFirst())))
        }
    }

    @Test func `an operation with a 428 requires If-Match`() throws {
        var count = 0
        for (name, operation) in try operations() where operation["responses"]?["428"] != nil {
            count += 1
            let field = try parameters(operation).first { $0["name"] == .string("If-Match") }
            #expect(field?["required"] == .bool(true), "\(name)")
        }
        #expect(count == 4)
    }

    @Test func `cursors, tokens, keys and identifiers have a minimum length`() throws {
        let names = [
            "after", "before", "since", "handle", "types", "access_token", "idempotencyKey", "Last-Event-ID",
            "If-Match",
            "id",
        ]
        for (name, operation) in try operations() {
            for parameter in try parameters(operation) {
                guard let text = parameter["name"]?.string, names.contains(text) else { continue }
                let schema = parameter["schema"]
                let isBounded = (schema?["minLength"]?.integer ?? 0) > 0 || schema?["pattern"] != nil
                #expect(isBounded, "\(name) \(text)")
            }
        }
    }

    private func collect(_ value: JSONValue, _ references: inout [String]) {
        switch value {
        case .object(let object):
            for member in object.members {
                if member.name == "$ref", let reference = member.value.string { references.append(reference) }
                collect(member.value, &references)
            }
        case .array(let items): for item in items { collect(item, &references) }
        default: break
        }
    }
}

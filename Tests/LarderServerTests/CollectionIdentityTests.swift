import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Your own data: identifiers, cursors and names", .oneMinute)
struct CollectionIdentityTests {
    private typealias Shop = CollectionShop

    /// The cursor of the page after the one at the target.
    private func cursor(_ shop: Shop, _ target: String) async throws -> String {
        let link = try #require(try await shop.ask("GET", target).field("Link"))
        return String(try #require(link.split(separator: "cursor=").last?.prefix { $0 != "&" && $0 != ">" }))
    }

    // MARK: Nothing is used again

    @Test func `a cursor does not skip a document that is created after the last ones were deleted`() async throws {
        let shop = try Shop()
        let cursor = try await cursor(shop, "/todos?limit=3")
        for id in [4, 7] { #expect(try await shop.ask("DELETE", "/todos/\(id)").status == 204) }
        #expect(try await shop.ask("POST", "/todos", "{}").status == 201)
        #expect(try await shop.ids("/todos?limit=3&cursor=\(cursor)") == [8])
    }

    @Test func `the text identifier of a deleted document is not given again`() async throws {
        let shop = try Shop(["notes.json": #"[{"id":"a"}]"#])
        let first = try await shop.ask("POST", "/notes", "{}").field("Location")
        #expect(try await shop.ask("DELETE", try #require(first)).status == 204)
        #expect(try await shop.ask("POST", "/notes", "{}").field("Location") != first)
    }

    @Test func `identifiers and places are not used again when the tombstones are forgotten`() async throws {
        let shop = try Shop { $0.settings.tombstoneRetention = .zero }
        let cursor = try await cursor(shop, "/todos?limit=3")
        #expect(try await shop.ask("POST", "/todos", "{}").field("Location") == "/todos/8")
        for id in [8, 4, 7] { #expect(try await shop.ask("DELETE", "/todos/\(id)").status == 204) }
        try shop.backend.main.world.forgetTombstones()
        #expect(try await shop.ask("POST", "/todos", "{}").field("Location") == "/todos/9")
        #expect(try await shop.ids("/todos?limit=3&cursor=\(cursor)") == [9])
    }

    @Test func `the change feed never tells of one document as deleted and created again`() async throws {
        let shop = try Shop(["notes.json": #"[{"id":"a"}]"#])
        let token = try #require(try await shop.ask("GET", "/changes").json["nextToken"]?.string)
        let first = try #require(try await shop.ask("POST", "/notes", "{}").field("Location"))
        _ = try await shop.ask("DELETE", first)
        _ = try await shop.ask("POST", "/notes", "{}")
        let items = try await shop.ask("GET", "/changes?since=\(token)").json["items"]?.array ?? []
        #expect(items.map { $0["op"]?.string } == ["delete", "upsert"])
        #expect(items.first?["id"]?.string != items.last?["id"]?.string)
    }

    // MARK: A cursor belongs to one list

    @Test func `a cursor of one collection, filter or order is rejected by another`() async throws {
        let list = #"[{"id":1,"a":"1","b":"2"},{"id":2,"a":"1","b":"2"},{"id":3,"a":"1&b=2"},{"id":4,"a":"1&b=2"}]"#
        let items = #"[{"id":1,"todoId":1},{"id":2,"todoId":1},{"id":3,"todoId":2},{"id":4,"todoId":2}]"#
        let shop = try Shop(["todos.json": list, "notes.json": list, "items.json": items])
        for (own, other) in [
            ("/todos?", "/notes?"), ("/todos?_sort=a&", "/notes?_sort=a&"), ("/todos?a=1&", "/notes?a=1&"),
            ("/todos?a=1&", "/todos?"), ("/todos?a=1&b=2&", "/todos?a=1%26b%3D2&"),
            ("/todos?_sort=a&", "/todos?_sort=b&"), ("/todos/1/items?", "/todos/2/items?"),
        ] {
            let cursor = try await cursor(shop, own + "limit=1")
            #expect(try await shop.ask("GET", own + "cursor=\(cursor)").status == 200)
            let rejected = try await shop.ask("GET", other + "cursor=\(cursor)")
            #expect(rejected.status == 400 && rejected.problem == "invalid-cursor", "\(own) \(other)")
            #expect(try rejected.json["errors"]?[0]?["pointer"]?.string == "cursor", "\(rejected.text)")
        }
    }

    // MARK: Many members

    /// The definition in RFC 7396 section 2, with the order of members: old ones stay, new ones follow.
    private static func merged(_ patch: JSONObject, into target: JSONObject) -> JSONObject {
        var result = target
        for member in patch.members {
            switch member.value {
            case .null: result[member.name] = nil
            case .object(let inner):
                result[member.name] = .object(merged(inner, into: result[member.name]?.object ?? JSONObject()))
            default: result[member.name] = member.value
            }
        }
        return result
    }

    private static func object(_ random: inout SeededGenerator, depth: Int) -> JSONObject {
        var object = JSONObject()
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let name = ["a", "b", "é", "e\u{301}", "d", "f", "g"].randomElement(using: &random) ?? "a"
            let isDeep = depth < 3 && Bool.random(using: &random)
            object[name] =
                isDeep
                ? .object(Self.object(&random, depth: depth + 1))
                : [.null, .bool(true), .integer(1), .array([.null])].randomElement(using: &random) ?? .null
        }
        return object
    }

    @Test func `each cursor of a list is accepted, whatever the texts it is sorted by`() async throws {
        let seed: UInt64 = 0xC0_25
        var random = SeededGenerator(seed: seed)
        let pieces = ["a", "\u{1}", "\"", "\\", "é", "漢", "𝄞", "👩‍👩‍👧‍👦", "e\u{301}", "\n"]
        let names = (0..<8).map { "k\($0)" }
        let documents = (1...12).map { id in
            let texts = names.map { name in
                let piece = pieces.randomElement(using: &random) ?? ""
                let mixed = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                    pieces.randomElement(using: &random) ?? ""
                }
                let text = mixed.joined() + String(repeating: piece, count: Int.random(in: 200...400, using: &random))
                return JSONObject.Member(name: name, value: .string(text))
            }
            return JSONValue.object(JSONObject([JSONObject.Member(name: "id", value: .integer(Int64(id)))] + texts))
        }
        let file = String(decoding: JSONValue.array(documents).encoded, as: UTF8.self)
        let shop = try Shop(["texts.json": file])
        let list = "/texts?_sort=\(names.joined(separator: ","))&limit=1"
        var (target, ids) = (list, [Int64]())
        for _ in documents {
            let reply = try await shop.ask("GET", target)
            #expect(reply.status == 200, "seed \(seed), page \(ids.count): \(reply.text.prefix(200))")
            ids += try reply.json.array?.compactMap { $0["id"]?.integer } ?? []
            guard let link = reply.field("Link"), let cursor = link.split(separator: "cursor=").dropFirst().last else {
                break
            }
            target = "\(list)&cursor=\(cursor.prefix { $0 != "&" && $0 != ">" })"
        }
        #expect(Set(ids) == Set((1...12).map { Int64($0) }) && ids.count == 12, "seed \(seed): \(ids)")
    }

    @Test func `a sort key is cut between two characters of Unicode`() {
        for piece in ["a", "é", "漢", "𝄞", "\u{1}", "\\"] {
            guard case .string(let key) = DocumentJSON.key(.string(String(repeating: piece, count: 500))) else {
                continue
            }
            let encoded = JSONValue.string(key).encoded.count - 2
            #expect(encoded <= 256 && encoded > 256 - 6, "\(piece)")
            #expect(key.unicodeScalars.allSatisfy { $0 == piece.unicodeScalars.first })
        }
        #expect(DocumentJSON.key(.string("short")) == .string("short"))
    }

    @Test func `a merge patch does what RFC 7396 says`() {
        let seed: UInt64 = 0x7396
        var random = SeededGenerator(seed: seed)
        for run in 0..<2_000 {
            let (target, patch) = (Self.object(&random, depth: 0), Self.object(&random, depth: 0))
            let expected = Self.merged(patch, into: target)
            #expect(DocumentJSON.merge(patch, into: target) == expected, "seed \(seed), run \(run)")
        }
    }

    /// Quadratic code takes minutes for these, and the suite has one.
    @Test func `a patch of 100,000 members takes linear time`() async throws {
        func members(_ prefix: String, _ value: JSONValue) -> JSONObject {
            JSONObject((0..<100_000).map { JSONObject.Member(name: "\(prefix)\($0)", value: value) })
        }
        let merged = DocumentJSON.merge(members("n", .integer(2)), into: members("o", .integer(1)))
        #expect(merged.members.count == 200_000 && merged.members.last?.name == "n99999")
        #expect(DocumentJSON.merge(members("n", .null), into: merged) == members("o", .integer(1)))
    }

    // MARK: Names

    @Test func `the Location of a new document has the prefix of its world`() async throws {
        let shop = try Shop()
        _ = try shop.backend.makeWorld(id: "other")
        let made = try await shop.ask("POST", "/w/other/todos", "{}", ["Idempotency-Key": "k"])
        #expect(made.field("Location") == "/w/other/todos/8")
        let again = try await shop.ask("POST", "/w/other/todos", "{}", ["Idempotency-Key": "k"])
        #expect(again.field("Location") == "/w/other/todos/8")
        #expect(try await shop.ask("GET", "/w/other/changes?since=abc").field("Location") == "/w/other/changes")
        #expect(try await shop.ask("POST", "/todos", "{}").field("Location") == "/todos/8")
    }

    @Test func `a misspelled collection leads to the nearest one`() async throws {
        let shop = try Shop(["todos.json": "[]", "notes.json": "[]"])
        for (method, target) in [
            ("GET", "/todoss"), ("GET", "/todoss/1"), ("POST", "/todoss"), ("DELETE", "/todoss/1"),
        ] {
            let reply = try await shop.ask(method, target, method == "POST" ? "{}" : nil)
            #expect(reply.status == 404)
            #expect(
                try reply.json["detail"]?.string
                    == "There is no collection 'todoss'. Did you mean /todos? GET / lists all."
            )
        }
        let far = try await shop.ask("GET", "/customers")
        #expect(try far.json["detail"]?.string == "There is no collection 'customers'. GET / lists all.")
    }

    @Test(arguments: [
        ("GET", "/todoss", "There is no collection 'todoss'. Did you mean /todos? GET / lists all."),
        ("GET", "/todoss/*", "There is no collection 'todoss'. Did you mean /todos? GET / lists all."),
        ("GET", "/v1/feed", "There is no collection 'v1'. GET / lists all."),
        ("PUT", "/todos", "/todos takes GET, POST, not PUT."),
        ("GET", "/todos", nil), ("GET", "/todos/99", nil), ("GET", "/changes", nil), ("GET", "/**", nil),
    ])
    func `a fault on a path that the collections do not have says so`(method: String, path: String, reason: String?)
        async throws
    {
        let shop = try Shop()
        let fault = #"{"id":"f","match":{"method":"\#(method)","path":"\#(path)"},"action":{"type":"reset"}}"#
        let reply = try await shop.ask("POST", "/_larder/faults", fault)
        #expect(reply.status == 201)
        let listed = try await shop.ask("GET", "/_larder/faults").json["items"]?[0]
        #expect(listed?["notServed"]?.string == reason)
    }
}

import LarderCoding
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Your own data: kept lists", .oneMinute)
struct CollectionListTests {
    private typealias Shop = CollectionShop

    // MARK: A model

    /// The collection as an array in the order of creation, with its own reading of the rules.
    private struct Model {
        var documents: [JSONObject] = []

        static let texts = ["", "a", "A", "ab", "z", "é", "e\u{301}", "f", "10", "9", "İ", "𝄞", "\u{FFFD}"]
        static let numbers: [JSONValue] = [
            .integer(0), .integer(-1), .integer(10), .integer(9), .number(9.5), .number(-0.5),
            .integer(9_007_199_254_740_993), .number(9_007_199_254_740_992), .integer(.max), .number(1e300),
        ]

        /// A value of any type; nil for a field that is missing.
        static func value(_ random: inout SeededGenerator) -> JSONValue? {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: nil
            case 1: .null
            case 2: .bool(Bool.random(using: &random))
            case 3, 4: numbers.randomElement(using: &random)
            case 5, 6: .string(texts.randomElement(using: &random) ?? "")
            default: .array([.string("a"), .integer(9)])
            }
        }

        private static func rank(_ value: JSONValue?) -> Int {
            switch value {
            case nil, .null?: 0
            case .bool?: 1
            case .integer?, .number?: 2
            case .string?: 3
            case .array?, .object?: 4
            }
        }

        /// Of the numbers in the pool; all parts are exact.
        private static func parts(_ value: JSONValue?) -> (Double, Int64) {
            switch value {
            case .bool(let bool)?: return (bool ? 1 : 0, 0)
            case .number(let number)?: return (number, 0)
            case .integer(let integer)?:
                let near = Double(integer)
                return (near, near >= 0x1p63 ? -1 : integer - Int64(near))
            default: return (0, 0)
            }
        }

        static func precedes(_ left: JSONValue?, _ right: JSONValue?) -> Bool {
            if rank(left) != rank(right) { return rank(left) < rank(right) }
            if let left = left?.string, let right = right?.string {
                return left.unicodeScalars.lexicographicallyPrecedes(right.unicodeScalars)
            }
            return parts(left) < parts(right)
        }

        /// The identifiers in the list that a target of `targets` asks for.
        func list(_ keep: (JSONObject) -> Bool, _ keys: [(field: String, isDescending: Bool)]) -> [Int64] {
            let kept = documents.enumerated().filter { keep($0.element) }
            return kept.sorted { left, right in
                for key in keys {
                    let (first, second) = (left.element[key.field], right.element[key.field])
                    if Self.precedes(first, second) { return !key.isDescending }
                    if Self.precedes(second, first) { return key.isDescending }
                }
                return left.offset < right.offset
            }.compactMap { $0.element["id"]?.integer }
        }
    }

    private typealias Ask = (
        query: String, keep: @Sendable (JSONObject) -> Bool, keys: [(field: String, isDescending: Bool)]
    )

    private static let asks: [Ask] = [
        ("?_sort=x", { _ in true }, [("x", false)]),
        ("?_sort=-x", { _ in true }, [("x", true)]),
        ("?_sort=y,-x", { _ in true }, [("y", false), ("x", true)]),
        ("?x=9", { has($0["x"]) { $0 == .integer(9) || $0 == .string("9") } }, []),
        ("?x=null&_sort=-y", { $0["x"] == .null }, [("y", true)]),
        ("?x_ne=a", { !has($0["x"]) { $0 == .string("a") } }, []),
        ("?x_like=a", { has($0["x"]) { $0.string?.lowercased().contains("a") ?? false } }, []),
        ("?x=%C3%A9&_sort=x", { $0["x"]?.string == "é" }, [("x", false)]),
        ("?id_gte=20&_sort=x,y", { ($0["id"]?.integer ?? 0) >= 20 }, [("x", false), ("y", false)]),
        (
            "?q=9",
            { document in
                document.members.contains {
                    has($0.value) { value in
                        switch value {
                        case .integer(let integer): String(integer).contains("9")
                        case .number(let number): String(number).contains("9")
                        case .string(let text): text.contains("9")
                        default: false
                        }
                    }
                }
            }, []
        ),
    ]

    /// Whether the value or an element of it fits.
    private static func has(_ value: JSONValue?, _ fits: (JSONValue) -> Bool) -> Bool {
        guard let value else { return false }
        return value.array?.contains(where: fits) ?? fits(value)
    }

    private func body(_ random: inout SeededGenerator) -> JSONObject {
        var object = JSONObject()
        for field in ["x", "y"] { object[field] = Model.value(&random) }
        return object
    }

    @Test(arguments: [0x19, 0xDA7A] as [UInt64])
    func `lists equal those of a plain model after any writes`(seed: UInt64) async throws {
        let shop = try Shop(["items.json": "[]", "others.json": "[]"])
        var random = SeededGenerator(seed: seed)
        var model = Model()
        var lastID: Int64 = 0
        for step in 0..<150 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...5:
                let object = body(&random)
                lastID += 1
                let text = String(decoding: JSONValue.object(object).encoded, as: UTF8.self)
                #expect(try await shop.ask("POST", "/items", text).status == 201)
                let id = JSONObject.Member(name: "id", value: .integer(lastID))
                model.documents.append(JSONObject([id] + object.members))
            case 6, 7:
                guard let index = model.documents.indices.randomElement(using: &random),
                    let id = model.documents[index]["id"]?.integer
                else { continue }
                let object = body(&random)
                let text = String(decoding: JSONValue.object(object).encoded, as: UTF8.self)
                #expect(try await shop.ask("PUT", "/items/\(id)", text).status == 200)
                model.documents[index] = JSONObject([.init(name: "id", value: .integer(id))] + object.members)
            case 8:
                guard let index = model.documents.indices.randomElement(using: &random),
                    let id = model.documents.remove(at: index)["id"]?.integer
                else { continue }
                #expect(try await shop.ask("DELETE", "/items/\(id)").status == 204)
                if Bool.random(using: &random) { try shop.backend.main.world.forgetTombstones() }
            default: _ = try await shop.ask("POST", "/others", #"{"x":1}"#)
            }
            guard let ask = Self.asks.randomElement(using: &random) else { continue }
            let expected = model.list(ask.keep, ask.keys)
            let start = Int.random(in: 0...max(1, expected.count), using: &random)
            let page = try await shop.ids("/items\(ask.query)&_start=\(start)&_limit=7")
            #expect(page == Array(expected.dropFirst(start).prefix(7)), "seed \(seed), step \(step), \(ask.query)")
            guard step % 10 == 9 else { continue }
            var (seen, target): ([Int64], String?) = ([], "/items\(ask.query)&limit=5")
            while let now = target, seen.count <= 2 * expected.count {
                let reply = try await shop.ask("GET", now)
                seen += try reply.json.array?.compactMap { $0["id"]?.integer } ?? []
                target = reply.field("Link").map { "/items" + $0.dropFirst().prefix { $0 != ">" } }
            }
            #expect(seen == expected, "seed \(seed), step \(step), \(ask.query)")
        }
    }

    // MARK: Other states

    @Test func `a lagging replica and a reset do not use a list of another state`() async throws {
        let shop = try Shop()
        let target = "/todos?_sort=-id"
        #expect(try await shop.ids(target) == [7, 4, 2, 1])
        let lag = #"{"id":"lag","match":{"method":"GET","path":"/todos"},"action":{"type":"lag","commits":1}}"#
        #expect(try await shop.ask("POST", "/_larder/faults", lag).status == 201)
        _ = try await shop.ask("DELETE", "/todos/7")
        _ = try await shop.ask("DELETE", "/todos/4")
        #expect(try await shop.ids(target) == [4, 2, 1])
        #expect(try await shop.ask("DELETE", "/_larder/faults/lag").status < 300)
        #expect(try await shop.ids(target) == [2, 1])
        _ = try await shop.ask("POST", "/_larder/worlds/main/reset")
        #expect(try await shop.ids(target) == [7, 4, 2, 1])
    }
}

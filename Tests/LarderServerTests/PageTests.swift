import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Uncached pages", .oneMinute)
struct PageTests {
    /// The feed of a viewer, read by offset as a reference.
    private func reference(_ scene: Scene, as handle: String?) async throws -> [JSONValue] {
        var items: [JSONValue] = []
        var number: Int64? = 1
        while let page = number {
            let reply = try await scene.ask("GET", "/v1/feed/pages?limit=100&page=\(page)", as: handle).json
            items += reply["items"]?.array ?? []
            number = reply["nextPage"]?.integer
        }
        return items
    }

    @Test(arguments: [0, 16 << 20])
    func `a page shows the present posts after random writes`(cacheBytes: Int) async throws {
        let seed: UInt64 = 0x5EED_0A6E
        var random = SeededGenerator(seed: seed)
        let scene = try Scene { $0.settings.responseCacheBytesMaximum = cacheBytes }
        var bodies: [String: [String: [UInt8]]] = [:]
        for step in 0..<250 {
            let handle = ["ana", "person2"].randomElement(using: &random) ?? "ana"
            let row = Int64.random(in: 1...(60 + Int64(step) / 8), using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0: _ = try await scene.ask("POST", "/v1/posts", as: handle, "{\"text\":\"step \(step)\"}")
            case 1, 2: _ = try await scene.ask("PUT", "/v1/posts/post_\(row)/like", as: handle)
            case 3: _ = try await scene.ask("DELETE", "/v1/posts/post_\(row)/like", as: handle)
            case 4:
                let fields = ["If-Match": "*"]
                _ = try await scene.ask("PATCH", "/v1/posts/post_\(row)", as: handle, "{\"text\":\"\(step)\"}", fields)
            case 5 where step % 3 == 0: _ = try await scene.ask("DELETE", "/v1/posts/post_\(row)", as: handle)
            default:
                let viewer = [nil, "ana", "person2"].randomElement(using: &random) ?? nil
                let limit = [1, 5, 20, 100].randomElement(using: &random) ?? 20
                let isNewest = Bool.random(using: &random)
                let cursor = Cursor(.feed, row: row).text
                let target = "/v1/feed?limit=\(limit)" + (isNewest ? "" : "&after=\(cursor)")
                let reply = try await scene.ask("GET", target, as: viewer)
                let all = try await reference(scene, as: viewer)
                let below = isNewest ? Int64.max : row
                let due = all.filter { item in
                    (item["id"]?.string).flatMap { EntityID(.post, parsing: $0)?.row } ?? 0 < below
                }
                let comment = Comment(rawValue: "seed \(seed), step \(step), \(target) as \(viewer ?? "nobody")")
                #expect(try reply.json["items"]?.array == Array(due.prefix(limit)), comment)
                #expect(try reply.json["nextCursor"] == .null || due.count > limit, comment)
                #expect(try reply.json["nextCursor"] != .null || due.count <= limit, comment)
                let tag = try #require(reply.field("ETag"))
                let key = target + (viewer ?? "")
                #expect(bodies[key]?[tag] ?? reply.body == reply.body, comment)
                #expect(!(bodies[key] ?? [:]).contains { $0.key != tag && $0.value == reply.body }, comment)
                bodies[key, default: [:]][tag] = reply.body
            }
        }
        await scene.backend.stop()
    }

    @Test func `a rolled-back write does not affect a page`() async throws {
        let scene = try Scene()
        let world = scene.backend.plane.worlds.main
        func page(_ store: Store) throws -> [[UInt8]] {
            try store.posts.page(.newest, author: nil, viewer: 0, limit: 5, form: .whole).map(\.json)
        }
        let before = try world.read { try page($0) }
        let newest = try #require(try world.read { try $0.posts.extent(author: nil) }).upperBound
        for deletes in [false, true] {
            var inside: [[UInt8]] = []
            #expect(throws: Problem.self) {
                try world.write { store, commit in
                    _ = try store.posts.addLikes(3, to: newest, at: commit.now)
                    if deletes { try store.posts.delete(newest - 1) }
                    inside = try page(store)
                    throw ProblemType.internalError("This is to be undone.")
                }
            }
            #expect(inside != before)
            #expect(try world.read { try page($0) } == before)
        }
        await scene.backend.stop()
    }

    @Test func `fast timestamps and numbers equal the plain formatting`() {
        let seed: UInt64 = 0x5EED_7135
        var random = SeededGenerator(seed: seed)
        func written(_ time: WallTime) -> String {
            var bytes: [UInt8] = []
            bytes.append(timestamp: time)
            return String(decoding: bytes, as: UTF8.self)
        }
        func written(_ number: Int64) -> String {
            var bytes: [UInt8] = []
            bytes.append(decimal: number)
            return String(decoding: bytes, as: UTF8.self)
        }
        let edges: [Int64] = [0, -1, 951_782_399_999, 951_782_400_000, 4_107_542_399_999, -9_223_372_036_000]
        for _ in 0..<20_000 {
            let time = WallTime(milliseconds: .random(in: -9_223_372_036_000...9_223_372_036_000, using: &random))
            #expect(written(time) == "\"\(time.rfc3339())\"", "seed \(seed)")
            let number = Int64.random(in: .min ... .max, using: &random) >> Int64.random(in: 0..<64, using: &random)
            #expect(written(number) == String(number), "seed \(seed)")
        }
        for edge in edges {
            #expect(written(WallTime(milliseconds: edge)) == "\"\(WallTime(milliseconds: edge).rfc3339())\"")
        }
        for number in [0, 9, 10, 99_999_999, 100_000_000, 1_000_000_001, 10_000_000_000_000_000, .max, .min, -7]
            as [Int64]
        {
            #expect(written(number) == String(number))
        }
    }

    @Test func `every route matches its own path, also for HEAD`() throws {
        let router = Router(APIRoutes.all)
        for route in APIRoutes.all {
            let path = route.template.description.split(separator: "/").map { $0.hasPrefix("{") ? "x" : $0 }
            let bytes = Array(("/" + path.joined(separator: "/")).utf8)
            guard case .route(let found, _) = router.match(route.method, path: bytes[...]) else {
                Issue.record("\(route.method) \(route.template) is not found")
                continue
            }
            #expect(found.template.description == route.template.description && found.method == route.method)
            guard route.method == .get, case .route(let head, _) = router.match(.head, path: bytes[...]) else {
                continue
            }
            #expect(head.template.description == route.template.description)
        }
    }
}

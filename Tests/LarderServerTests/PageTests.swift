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
    }

    @Test func `a rolled-back write does not affect a page`() async throws {
        let scene = try Scene()
        let world = scene.backend.plane.worlds.main
        func page(_ store: Store) throws -> [[UInt8]] {
            try store.entities.page(.newest, of: .all(.post), limit: 5).map(\.json)
        }
        let before = try world.read { try page($0) }
        let newest = try #require(try world.read { try $0.entities.extent(.all(.post)) }).upperBound
        for deletes in [false, true] {
            var inside: [[UInt8]] = []
            #expect(throws: Problem.self) {
                try world.commit { store, commit in
                    try commit.save(try #require(try store.entities.find(EntityID(.post, newest))), in: store)
                    if deletes {
                        let post = try #require(try store.entities.find(EntityID(.post, newest - 1)))
                        try commit.delete(post, in: store)
                    }
                    inside = try page(store)
                    throw ProblemType.internalError("This is to be undone.")
                }
            }
            #expect(inside != before)
            #expect(try world.read { try page($0) } == before)
        }
    }

    @Test func `every route matches its own path, also for HEAD`() throws {
        for route in APIRoutes.all {
            let path = route.template.split(separator: "/").map { $0.hasPrefix("{") ? "x" : $0 }
            let matches = APIRoutes.all.matches(Array(("/" + path.joined(separator: "/")).utf8)[...])
            let method = try #require(route.method)
            #expect(matches.accepting(method).first?.route.name == route.name)
            if method == .get { #expect(matches.accepting(.head).first?.route.name == route.name) }
        }
    }

    @Test func `a cursor under the name that other APIs use is rejected`() async throws {
        let reply = try await Scene().ask("GET", "/v1/feed?cursor=x")
        #expect(reply.status == 400 && reply.text.contains("`after`"), "\(reply.text)")
    }
}

import LarderCoding
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("Search", .oneMinute)
struct SearchTests {
    private func items(_ reply: RawReply) throws -> [JSONValue] { try reply.json["items"]?.array ?? [] }

    private func post(_ scene: Scene, _ text: String) async throws -> String {
        let reply = try await scene.ask("POST", "/v1/posts", "{\"text\":\"\(text)\"}")
        return try #require(try reply.json["id"]?.string)
    }

    @Test func `posts with all words are found in any case, newest first, as the feed has them`() async throws {
        let scene = try Scene()
        let first = try await post(scene, "Zebras at the ÖSTLICHE gate")
        let second = try await post(scene, "the gate of zebras, östliche side")
        _ = try await post(scene, "zebras only")
        let found = try items(try await scene.ask("GET", "/v1/search?q=zebra%20%20%C3%96stliche"))
        #expect(found.map { $0["id"]?.string } == [second, first])
        let feed = try items(try await scene.ask("GET", "/v1/feed?limit=3"))
        #expect(found[0] == feed[1])
        #expect(try items(try await scene.ask("GET", "/v1/search?q=authorId")).isEmpty, "Names of members are no text.")
    }

    @Test func `cursors walk through all results once, and belong to their search`() async throws {
        let scene = try Scene()
        var expected: [String] = []
        for number in 0..<25 { expected.insert(try await post(scene, "walrus \(number)"), at: 0) }
        var (path, found) = ("/v1/search?q=walrus&limit=10", [String]())
        var cursor: String?
        for _ in 0..<5 {
            let reply = try await scene.ask("GET", path)
            found += try items(reply).compactMap { $0["id"]?.string }
            // A post that comes meanwhile moves nothing.
            _ = try await post(scene, "walrus late")
            guard let next = try reply.json["nextCursor"]?.string else { break }
            cursor = next
            path = "/v1/search?q=Walrus&limit=10&after=\(next)"
        }
        #expect(found == expected)
        let foreign = try #require(cursor)
        #expect(try await scene.ask("GET", "/v1/search?q=other&after=\(foreign)").status == 400)
        #expect(try await scene.ask("GET", "/v1/search?q=walrus&kind=people&after=\(foreign)").status == 400)
    }

    @Test func `people are found by name, handle, place and description`() async throws {
        let scene = try Scene()
        let people = try items(try await scene.ask("GET", "/v1/profiles?limit=100"))
        var searched = 0
        for member in ["displayName", "handle", "location", "bio"] {
            let words = people.flatMap { ($0[member]?.string ?? "").lowercased().split(separator: " ") }
            guard let word = words.first(where: { $0.utf8.allSatisfy { 97...122 ~= $0 } }) else { continue }
            searched += 1
            let found = try items(try await scene.ask("GET", "/v1/search?kind=people&limit=100&q=\(word)"))
            #expect(found.contains { $0[member]?.string?.lowercased().contains(word) ?? false }, "\(member): \(word)")
        }
        #expect(searched >= 2, "The generated people have names and handles.")
    }

    @Test(arguments: ["", "?q=", "?q=%20", "?q=a&kind=cats", "?q=a&limit=0", "?q=a&after=x"])
    func `a search without words, of an unknown kind or with a wrong page is rejected`(query: String) async throws {
        let scene = try Scene()
        let reply = try await scene.ask("GET", "/v1/search" + query)
        #expect(reply.status == 400 || reply.status == 422, "\(reply.status)")
    }

    @Test func `a request looks at a limited number of entities, and the next goes on behind them`() async throws {
        let scene = try Scene()
        let (first, second) = try scene.backend.plane.worlds.main.read { store in
            func search(before row: Int64, scanning maximum: Int) throws -> (rows: [Int64], rest: Int64?) {
                try store.entities.search(["no such word"], in: .post, from: row, limit: 5, scanning: maximum)
            }
            return (try search(before: 10, scanning: 4), try search(before: 6, scanning: 40))
        }
        #expect(first.rows.isEmpty && first.rest == 6)
        #expect(second.rows.isEmpty && second.rest == nil)
    }
}

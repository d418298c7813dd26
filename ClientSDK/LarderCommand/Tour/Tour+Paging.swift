import Larder
import LarderModels
import LarderServer

extension TourScene {
    /// Two clients page through one feed while it changes.
    func paging() async throws -> TourChapter {
        let (table, results) = try await TourTable.measured(
            "Posts that existed all the time",
            columns: ["pages by", "seen twice", "never seen", "requests", "bytes"],
            [(name: "position", value: false), (name: "cursor", value: true)]
        ) { isByCursor in
            let (seen, kept, traffic) = try await page(isByCursor)
            return (
                doubled: seen.count - Set(seen).count, missed: kept.subtracting(seen).count, traffic: traffic
            )
        } row: {
            [.count($0.doubled), .count($0.missed), .count($0.traffic.requests), .bytes($0.traffic.bytes)]
        }
        return TourChapter(
            name: .paging,
            question:
                "Two clients read a feed of 240 posts in pages of 20. After each page somebody publishes two posts and deletes an old one. "
                + "Which posts does each client see twice, and which never?",
            tables: [table],
            answer:
                "By position \(results[0].doubled) posts came twice and \(results[0].missed) never, because the list moves under the position. "
                + "By cursor \(results[1].doubled) and \(results[1].missed): a cursor names the post after which the next page begins."
        )
    }

    /// Reads all pages; their identifiers, those that existed before and after, and the traffic.
    private func page(_ isByCursor: Bool) async throws -> (seen: [String], kept: Set<String>, traffic: TourTraffic) {
        let world = try world()
        let client = try await PlainClient(world, "reader", keeps: nil, attempts: 1)
        let before = try await all(client)
        let last = await world.journal().last?.number ?? 0
        // The newest of these would never be reached by a reader who has passed them.
        let doomed = before.suffix(40).reversed().map { $0 }
        var seen: [String] = []
        var cursor: String?
        for number in 0..<12 {
            let position = isByCursor ? cursor.map { "&after=\($0)" } ?? "" : ""
            let path = isByCursor ? "/v1/feed?limit=20\(position)" : "/v1/feed/pages?limit=20&page=\(number + 1)"
            let page: Page<Post> = try await client.get(path)
            seen += page.items.map(\.id)
            cursor = page.nextCursor
            for post in 0..<2 {
                try world.act("POST", "/v1/posts", as: Self.other, "{\"text\":\"news \(number).\(post)\"}")
            }
            try remove(doomed[number], world)
            if isByCursor, cursor == nil { break }
        }
        let traffic = await TourTraffic(world, after: last)
        return (seen, Set(before).intersection(try await all(client)), traffic)
    }

    private func all(_ client: PlainClient) async throws -> [String] {
        var ids: [String] = []
        var cursor: String?
        repeat {
            let page: Page<Post> = try await client.get("/v1/feed?limit=100" + (cursor.map { "&after=\($0)" } ?? ""))
            ids += page.items.map(\.id)
            cursor = page.nextCursor
        } while cursor != nil
        return ids
    }

    /// Deletes a post as its author.
    private func remove(_ id: String, _ world: MockWorld) throws {
        let post: Post = try world.state("/v1/posts/\(id)")
        try world.act("DELETE", "/v1/posts/\(id)", as: try world.handle(post.authorID))
    }
}

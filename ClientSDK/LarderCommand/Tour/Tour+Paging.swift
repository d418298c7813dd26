import Larder
import LarderModels
import LarderServer

extension TourScene {
    /// Two clients page through one feed while it changes.
    func paging() async throws -> TourChapter {
        var chapter = begin(
            .paging,
            "Two clients read a feed of 240 posts in pages of 20. After each page somebody publishes two posts and deletes an old one. Which "
                + "posts does each client see twice, and which never?"
        )
        let (table, results) = try await TourTable.measured(
            "Posts that existed all the time",
            columns: ["pages by", "seen twice", "never seen", "requests", "bytes"],
            [(name: "position", value: false), (name: "cursor", value: true)]
        ) { isByCursor in
            let (pages, kept, traffic) = try await page(isByCursor)
            let seen = pages.flatMap { $0 }
            return (
                pages: pages, doubled: seen.count - Set(seen).count, missed: kept.subtracting(seen).count,
                traffic: traffic
            )
        } row: {
            [.count($0.doubled), .count($0.missed), .count($0.traffic.requests), .bytes($0.traffic.bytes)]
        }
        chapter.exhibits = [.table(table), .table(Self.pages(results.map(\.pages)))]
        chapter.answer =
            "By position \(results[0].doubled) posts came twice and \(results[0].missed) never, because the list moves under the position. By "
            + "cursor \(results[1].doubled) and \(results[1].missed): a cursor names the post after which the next page begins."
        return chapter
    }

    /// The pages of both clients, side by side.
    private static func pages(_ clients: [[[String]]]) -> TourTable {
        var table = TourTable(
            title: "Page by page, while posts come and go",
            columns: ["page"] + ["position", "cursor"].flatMap { ["by \($0)", "seen before", "different so far"] },
            rows: []
        )
        var seen = clients.map { _ in Set<String>() }
        for number in 0..<(clients.map(\.count).max() ?? 0) {
            table.rows.append(
                [.count(number + 1)]
                    + clients.enumerated().flatMap { index, pages -> [TourValue] in
                        guard number < pages.count else { return [.none, .none, .none] }
                        let page = pages[number]
                        let doubled = page.count { seen[index].contains($0) }
                        seen[index].formUnion(page)
                        return [.count(page.count), .count(doubled), .count(seen[index].count)]
                    }
            )
        }
        return table
    }

    /// Reads all pages; the identifiers of each, those that existed before and after, and the traffic.
    private func page(_ isByCursor: Bool) async throws -> (pages: [[String]], kept: Set<String>, traffic: TourTraffic) {
        let world = try world()
        let client = try await PlainClient(world, "reader", keeps: nil, attempts: 1)
        let before = try await all(client)
        let last = await world.journal().last?.number ?? 0
        // The newest of these would never be reached by a reader who has passed them.
        let doomed = before.suffix(40).reversed().map { $0 }
        var pages: [[String]] = []
        var cursor: String?
        for number in 0..<12 {
            let position = isByCursor ? cursor.map { "&after=\($0)" } ?? "" : ""
            let path = isByCursor ? "/v1/feed?limit=20\(position)" : "/v1/feed/pages?limit=20&page=\(number + 1)"
            let page: Page<Post> = try await client.get(path)
            pages.append(page.items.map(\.id))
            cursor = page.nextCursor
            for post in 0..<2 {
                try world.act("POST", "/v1/posts", as: Self.other, "{\"text\":\"news \(number).\(post)\"}")
            }
            try remove(doomed[number], world)
            if isByCursor, cursor == nil { break }
        }
        let traffic = await TourTraffic(world, after: last)
        return (pages, Set(before).intersection(try await all(client)), traffic)
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

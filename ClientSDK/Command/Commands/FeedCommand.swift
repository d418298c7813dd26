import Larder
import LarderCoding
import LarderModels
import LarderTime

/// `larder feed`: the newest posts.
struct FeedCommand {
    let kitchen: Kitchen
    private var names = Names()

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    private var limit: Int { kitchen.arguments.limit ?? 10 }

    mutating func run() async throws {
        guard !kitchen.arguments.isLive else { return try await follow() }
        let reading = try await kitchen.read(kitchen.client.feed.newest, called: "the feed")
        let posts = reading.snapshot.value?.items ?? []
        if kitchen.terminal.isJSON {
            kitchen.terminal.json(
                .members([
                    ("badge", Badge(reading.snapshot).json),
                    ("items", .array(try posts.prefix(limit).map { try JSONValue(encoding: $0) })),
                ])
            )
            return
        }
        await names.learn(posts.prefix(limit).map(\.authorId), in: kitchen)
        for line in lines(Array(posts.prefix(limit)), kitchen.now) { kitchen.terminal.line(line) }
        if posts.isEmpty { kitchen.terminal.line("Nobody has written anything yet.") }
        kitchen.terminal.line(kitchen.footer(reading))
    }

    private func lines(_ posts: [Post], _ now: WallTime) -> [String] {
        let unsent = PostLine.unsent(kitchen)
        let columns = kitchen.terminal.isTerminal ? kitchen.terminal.size.columns : 100
        return posts.flatMap { post in
            PostLine.lines(post, names, kitchen.terminal, columns, now, isUnsent: unsent.contains(post.id))
        }
    }

    // MARK: Live

    private mutating func follow() async throws {
        let board = NameBoard(kitchen)
        let (kitchen, limit) = (kitchen, limit)
        kitchen.noteConnection()
        let view = LiveView<EntityList<Post>>(
            kitchen: kitchen,
            draw: { moment in
                let (columns, rows) = kitchen.terminal.size
                let posts = (moment.snapshot.value?.items ?? []).prefix(min(limit, max(1, (rows - 4) / 2)))
                let names = await board.names(posts.map(\.authorId))
                let unsent = PostLine.unsent(kitchen)
                let badge = Badge(moment.snapshot)
                var lines = [
                    kitchen.terminal.paint("larder feed", .bold) + "  \(LiveWords.text(moment.state))",
                    kitchen.terminal.paint(badge, TextWidth.fit(badge.text(at: moment.now), columns)), "",
                ]
                for post in posts {
                    lines += PostLine.lines(
                        post,
                        names,
                        kitchen.terminal,
                        columns,
                        moment.now,
                        isUnsent: unsent.contains(post.id)
                    )
                }
                return lines
            },
            changes: { old, new in
                guard let list = new.value else { return [] }
                if kitchen.terminal.isJSON {
                    return try Self.jsonLines(old?.value?.items, list.items, Badge(new), limit)
                }
                let isFirst = old?.value == nil
                let posts = isFirst ? Array(list.items.prefix(limit)) : list.items
                let names = await board.names(list.items.prefix(limit).map(\.authorId))
                return PostLine.changes(isFirst ? [] : old?.value?.items ?? [], posts, names)
            }
        )
        try await view.run(kitchen.client.feed.newest)
    }

    private static func jsonLines(_ old: [Post]?, _ new: [Post], _ badge: Badge, _ limit: Int) throws -> [String] {
        let items = new.prefix(limit)
        guard old.map({ Array($0.prefix(limit)) }) != Array(items) else { return [] }
        var writer = JSONWriter()
        writer.value(
            .members([("badge", badge.json), ("items", .array(try items.map { try JSONValue(encoding: $0) }))])
        )
        return [String(decoding: writer.bytes, as: UTF8.self)]
    }
}

/// Names for a view that asks for them again and again.
actor NameBoard {
    private let kitchen: Kitchen
    private var known = Names()

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    /// The names of these people, and of those who were asked for before.
    func names(_ ids: [String]) async -> Names {
        var names = known
        await names.learn(ids, in: kitchen)
        known = names
        return names
    }
}

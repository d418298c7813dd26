import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder feed`: the newest posts, or one.
struct FeedCommand {
    let context: CommandContext

    private var limit: Int { context.arguments.limit ?? 10 }

    func run() async throws {
        guard !context.arguments.isLive else { return try await follow() }
        let feed = context.client.feed
        let (posts, reading) = try await context.read(feed.newest, feed.timeline, atMost: limit, called: "the feed")
        try await context.show(posts, reading, orElse: "No posts yet.") { await lines(posts) }
    }

    /// One post with its likes, which are fresh for a shorter time than its text.
    func show(_ id: String) async throws {
        let reading = try await context.read(
            context.client.feed.post(id),
            fields: ["likeCount"],
            called: "post '\(id)'"
        )
        guard let post = reading.snapshot.value else { return }
        if context.terminal.isJSON {
            return context.terminal.json(try reading.snapshot.json(withItem: post))
        }
        for line in await lines([post]) { context.terminal.line(line) }
        context.terminal.line(context.footer(reading))
    }

    private func lines(_ posts: [Post]) async -> [String] {
        let names = await context.people(posts.map(\.authorID))
        let unsent = PostLine.unsent(context)
        let columns = context.terminal.isTerminal ? context.terminal.size.columns : 100
        return posts.flatMap { post in
            PostLine.lines(post, names, context.terminal, columns, context.now, isUnsent: unsent.contains(post.id))
        }
    }

    // MARK: Live

    private func follow() async throws {
        let view = LiveView<Timeline<Post>.List>(
            context: context,
            changes: { old, new in
                guard let list = new.value else { return [] }
                if context.terminal.isJSON {
                    let items = list.items.prefix(limit)
                    return old?.value?.items.prefix(limit) == items ? [] : [try new.json(with: items).line]
                }
                let isFirst = old?.value == nil
                let posts = isFirst ? Array(list.items.prefix(limit)) : list.items
                let names = await context.people(list.items.prefix(limit).map(\.authorID))
                return PostLine.changes(isFirst ? [] : old?.value?.items ?? [], posts, names)
            }
        )
        try await view.run(context.client.feed.newest)
    }
}

import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder search TEXT`: people and posts with all words of the text.
struct SearchCommand {
    let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    func run(_ text: String) async throws {
        let people = try await context.read(context.client.search.peopleList(text), called: "people for '\(text)'")
        let posts = try await context.read(context.client.search.postList(text), called: "posts for '\(text)'")
        let limit = context.arguments.limit ?? 10
        let foundPeople = Array((people.snapshot.value?.items ?? []).prefix(limit))
        let foundPosts = Array((posts.snapshot.value?.items ?? []).prefix(limit))
        if context.terminal.isJSON {
            context.terminal.json(
                .members([
                    ("badge", Badge(posts.snapshot).json),
                    ("people", .array(try foundPeople.map { try JSONValue(encoding: $0) })),
                    ("posts", .array(try foundPosts.map { try JSONValue(encoding: $0) })),
                ])
            )
            return
        }
        for profile in foundPeople {
            context.terminal.line("\(profile.displayName) @\(profile.handle) · \(profile.location)")
        }
        var names = NameTable()
        await names.load(foundPosts.map(\.authorID), in: context)
        let columns = context.terminal.isTerminal ? context.terminal.size.columns : 100
        let unsent = PostLine.unsent(context)
        for post in foundPosts {
            let isUnsent = unsent.contains(post.id)
            for line in PostLine.lines(post, names, context.terminal, columns, context.now, isUnsent: isUnsent) {
                context.terminal.line(line)
            }
        }
        if foundPeople.isEmpty, foundPosts.isEmpty { context.terminal.line("Nothing has all words of '\(text)'.") }
        context.terminal.line(context.footer(posts))
    }
}

import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder search TEXT`: people and posts with all words of the text.
struct SearchCommand {
    let context: CommandContext

    func run(_ text: String) async throws {
        let search = context.client.search
        let limit = context.arguments.limit ?? 10
        let people = try await context.read(
            search.peopleList(text),
            search.people(text),
            atMost: limit,
            called: "people for '\(text)'"
        )
        let posts = try await context.read(
            search.postList(text),
            search.posts(text),
            atMost: limit,
            called: "posts for '\(text)'"
        )
        let found = FoundEntities(people: people.items, posts: posts.items)
        if context.terminal.isJSON {
            return context.terminal.json(.members([("badge", posts.reading.snapshot.badgeJSON)] + (try found.json)))
        }
        for line in await found.lines(context) { context.terminal.line(line) }
        if found.isEmpty { context.terminal.line("Nothing has all words of '\(text)'.") }
        context.terminal.line(context.footer(posts.reading))
    }
}

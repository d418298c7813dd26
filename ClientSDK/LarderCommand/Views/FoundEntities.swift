import LarderCoding
import LarderModels

/// The results of a search.
struct FoundEntities {
    var people: [Profile]
    var posts: [Post]

    var isEmpty: Bool { people.isEmpty && posts.isEmpty }

    var json: [(String, JSONValue?)] {
        get throws {
            [
                ("people", .array(try people.map { try JSONValue(encoding: $0) })),
                ("posts", .array(try posts.map { try JSONValue(encoding: $0) })),
            ]
        }
    }

    /// A line for each person, and two for each post.
    func lines(_ context: CommandContext) async -> [String] {
        let names = await context.people(posts.map(\.authorID))
        let columns = context.terminal.isTerminal ? context.terminal.size.columns : 100
        let people = people.map { person in
            let place = person.location.isEmpty ? "" : " · \(person.location)"
            return TextWidth.fit("\(person.displayName) @\(person.handle)\(place)", columns)
        }
        let unsent = PostLine.unsent(context)
        return people
            + posts.flatMap { post in
                PostLine.lines(post, names, context.terminal, columns, context.now, isUnsent: unsent.contains(post.id))
            }
    }
}

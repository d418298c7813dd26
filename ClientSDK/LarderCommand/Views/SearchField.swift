import Larder
import LarderCoding
import LarderDemo
import Observation

/// `larder search` without a text: searches while a person types. Each key replaces the search before, whose request is cancelled.
///
/// In a terminal the results are redrawn with each change, and the arrows go on to the next page. Otherwise each line of standard input is
/// the text of the field, and its results are printed once they are there, unless another line comes before.
@MainActor struct SearchField {
    private enum Event: Sendable {
        case input(TextField.Input)
        case changed
        case interrupted
    }

    private static let page = 20

    private let context: CommandContext
    private let search: SearchModel
    private var terminal: Terminal { context.terminal }
    private var limit: Int { context.arguments.limit ?? 10 }

    init(_ context: CommandContext) {
        self.context = context
        search = SearchModel(context.client)
    }

    func run() async throws {
        let (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(64))
        let readsKeys = TextField.readsKeys(terminal)
        let raw = readsKeys ? RawInput() : nil
        let screen = Screen(terminal)
        let interrupt = Interrupt { continuation.yield(.interrupted) }
        let search = search
        let changes = Task {
            for await _ in Observations({ (search.summary, search.isSearching, search.foundPosts) }) {
                continuation.yield(.changed)
            }
        }
        defer {
            changes.cancel()
            withExtendedLifetime((interrupt, raw)) {}
        }
        context.noteConnection()
        TextField.read(keys: readsKeys) { continuation.yield(.input($0)) }
        search.room = limit
        var first = 0
        var isAwaited = false
        var hasEnded = false
        for await event in events {
            switch event {
            case .input(.text(let text)):
                search.text = text
                (first, isAwaited) = (0, !text.allSatisfy(\.isWhitespace))
            case .input(.scroll(let lines)): first = max(0, min(count - 1, first + lines))
            case .input(.end): hasEnded = true
            case .changed: break
            case .interrupted: return
            }
            if terminal.isTerminal {
                screen.show(await frame(from: first))
                if hasEnded, readsKeys { return }
            }
            if isAwaited, !search.isSearching {
                isAwaited = false
                if !terminal.isTerminal { try await printFound() }
            }
            if hasEnded, !isAwaited { return }
        }
    }

    private var count: Int { search.foundPeople.count + search.foundPosts.count }

    /// The screen: the field, and the found people and posts from one on. There is room for more than is shown, so that the next page is
    /// there before it is needed.
    private func frame(from first: Int) async -> [String] {
        let (columns, rows) = terminal.size
        // By whole pages, because more room begins the observation again.
        search.room = max(limit, (first + rows + Self.page - 1) / Self.page * Self.page)
        let people = search.foundPeople.dropFirst(first).prefix(rows)
        let posts = search.foundPosts.dropFirst(max(0, first - search.foundPeople.count)).prefix(rows)
        let found = FoundEntities(people: Array(people), posts: Array(posts))
        var state = search.isSearching ? "searching…" : search.summary
        if let notice = search.notice(at: context.now) { state += " · \(notice.text)" }
        return [
            terminal.paint("larder search", .bold) + "  " + TextWidth.fit(search.text, columns - 16)
                + terminal.paint("▏", .cyan),
            terminal.paint(TextWidth.fit(state, columns), .dim), "",
        ] + (await found.lines(context))
    }

    private func printFound() async throws {
        let (text, summary) = (search.text, search.summary)
        let found = FoundEntities(
            people: Array(search.foundPeople.prefix(limit)),
            posts: Array(search.foundPosts.prefix(limit))
        )
        guard !terminal.isJSON else {
            let head: [(String, JSONValue?)] = [("text", .string(text)), ("summary", .string(summary))]
            return terminal.json(.members(head + (try found.json)))
        }
        for line in await found.lines(context) { terminal.line(line) }
        terminal.line(terminal.paint("\(text): \(summary)", .dim))
    }
}

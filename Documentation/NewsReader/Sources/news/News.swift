import Foundation
import Larder
import NewsKit

@main
struct News {
    static let usage = """
        news COMMAND [--server URL] [--directory DIR] [--offline]

          sign-in PASSWORD     store a session (the password of the example backend is "news")
          list                 the newest articles
          more                 load the next page of older articles
          show ID              one article
          star ID | unstar ID  set or remove a bookmark
          bookmarks            the bookmarks
          comment ID TEXT      post a comment
          almanac | me         two resources with other caching rules
          watch ID             show an article and its changes until Ctrl-C
          send                 send what waits in the outbox
          rejected             the writes that the server has rejected
          retry | drop         send them again, or give them up
        """

    static func main() async {
        do {
            let arguments = try Arguments(Array(CommandLine.arguments.dropFirst()))
            guard let command = arguments.words.first else { throw Arguments.Misuse(text: usage) }
            let news = try await NewsClient(
                server: arguments.server,
                directory: arguments.directory,
                followsEvents: command == "watch"
            ) { configuration in
                if arguments.isOffline { configuration.cache.mayUseNetwork = { false } }
            }
            try await run(command, arguments, news)
            news.api.close()
        } catch let error as Arguments.Misuse { end(error.text, 2) } catch { end("news: \(error)", 1) }
    }

    private static func end(_ text: String, _ code: Int32) -> Never {
        FileHandle.standardError.write(Data((text + "\n").utf8))
        exit(code)
    }

    private static func run(_ command: String, _ arguments: Arguments, _ news: NewsClient) async throws {
        let cache = news.api.cache
        switch command {
        case "sign-in":
            try await news.signIn(password: arguments.operand(1, "a password"))
            print("signed in")
            // What waited for a session is sent.
            if !news.api.cache.outbox.status.isDrained { try await send(news, arguments) }
        case "list": try await list(news)
        case "more":
            _ = try await news.articles.loadOlder()
            try await list(news)
        case "show":
            let snapshot = try await cache.snapshot(news.article(arguments.article()))
            guard let article = snapshot.value else { return print("There is no such article.") }
            print("\(article.title) (revision \(article.revision))")
            print(article.bodyText ?? "")
            print("\(snapshot.freshness), \(snapshot.source.map { "from \($0)" } ?? "not stored")")
        case "star", "unstar":
            try news.setBookmark(command == "star", article: arguments.article())
            try await send(news, arguments)
        case "bookmarks":
            // A list shows what is stored at once; this process would end before the server has confirmed it.
            let snapshot = try await cache.snapshot(news.bookmarks, .cacheFirst)
            print((snapshot.value?.items ?? []).map { "\($0.id)" }.joined(separator: " "), "(\(snapshot.freshness))")
        case "comment":
            try news.comment(arguments.operand(2, "an ID and a text"), article: arguments.article())
            try await send(news, arguments)
        case "almanac":
            let snapshot = try await cache.snapshot(news.almanac)
            print("sunrise", snapshot.value?["sunrise"] ?? "unknown", "(\(snapshot.freshness))")
        case "me": print(try await cache.value(news.me).name)
        case "watch":
            for await snapshot in cache.snapshots(news.article(try arguments.article())) {
                guard let article = snapshot.value else { continue }
                // Not `print`, whose buffer is lost with Ctrl-C.
                let line = "\(article.title) (revision \(article.revision)), \(snapshot.freshness)\n"
                FileHandle.standardOutput.write(Data(line.utf8))
            }
        case "send": try await send(news, arguments)
        case "rejected":
            for entry in cache.outbox.rejected { print(entry.request?.path ?? "", entry.rejection?.title ?? "") }
        case "retry":
            for entry in cache.outbox.rejected { try cache.outbox.retry(entry.id) }
            try await send(news, arguments)
        case "drop":
            for entry in cache.outbox.rejected { try cache.outbox.drop(entry.id) }
        default: throw Arguments.Misuse(text: usage)
        }
    }

    private static func list(_ news: NewsClient) async throws {
        let list = try await news.articles.snapshot()
        let stars = Set(news.api.cache.stored(news.bookmarks)?.value?.items.map(\.id) ?? [])
        for item in list.items { print(item.id, stars.contains(item.id) ? "*" : " ", item.title) }
        print("\(list.items.count) articles, \(list.freshness)\(list.hasReachedEnd ? ", all" : "")")
        if let error = list.refreshError { print("not refreshed: \(error)") }
    }

    /// Sends what waits, unless the network may not be used.
    private static func send(_ news: NewsClient, _ arguments: Arguments) async throws {
        guard !arguments.isOffline else { return print("stored; it will be sent") }
        let rest = try await news.api.cache.outbox.drain(within: .seconds(10))
        guard !rest.isEmpty else { return print("sent") }
        for left in rest { print("waits: \(left.entry.request?.path ?? ""), \(left.reason.rawValue)") }
    }
}

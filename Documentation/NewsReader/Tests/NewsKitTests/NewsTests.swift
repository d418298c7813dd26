import Foundation
import Larder
import LarderTesting
import NewsKit
import Testing

/// The news reader on a fake backend and a manual clock.
@Suite("News reader", .timeLimit(.minutes(1))) struct NewsTests {
    /// A backend, a directory and a clock; clients come and go.
    struct Scene {
        let backend = FakeNews()
        let clock = ManualClock()
        let directory = NSTemporaryDirectory() + "news-" + UUID().uuidString

        func client(isOffline: Bool = false) async throws -> NewsClient {
            let (transport, clock) = (backend.transport(), clock)
            return try await NewsClient(server: "http://news.test", directory: directory) { configuration in
                configuration.transport = transport
                configuration.cache.wallClock = clock
                configuration.cache.monotonicClock = clock
                configuration.services = .none
                if isOffline { configuration.cache.mayUseNetwork = { false } }
            }
        }

        func remove() { try? FileManager.default.removeItem(atPath: directory) }
    }

    /// Waits until the first attempt of the only operation has failed.
    private func failed(_ news: NewsClient) async {
        for await _ in news.api.cache.outbox.statuses where news.api.cache.outbox.entries.first?.error != nil { return }
    }

    @Test func `the backend decides how long an article is fresh`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        for _ in 1...3 { #expect(try await news.api.cache.value(news.article(7)).bodyText == "Text 7") }
        #expect(scene.backend.count("GET /articles/7") == 1)
        scene.clock.advance(by: .seconds(61))
        _ = try await news.api.cache.value(news.article(7))
        #expect(scene.backend.count("GET /articles/7") == 2)
    }

    @Test func `pages follow the links until the last one, and a page of the list keeps the text of an opened article`()
        async throws
    {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        _ = try await news.api.cache.value(news.article(45))
        _ = try await news.articles.snapshot()
        while try await news.articles.loadOlder() == .more {}
        let list = try await news.articles.snapshot()
        #expect(list.items.map(\.id) == Array((1...45).reversed()))
        #expect(list.hasReachedEnd)
        #expect(list.items.first?.bodyText == "Text 45")
    }

    @Test func `a resource with a date alone is revalidated and not downloaded`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        _ = try await news.api.cache.value(news.almanac)
        scene.clock.advance(by: .seconds(31))
        let snapshot = try await news.api.cache.snapshot(news.almanac)
        #expect(snapshot.freshness == .fresh)
        #expect(scene.backend.count("GET /almanac") == 2)
        #expect(snapshot.value == ["sunrise": "06:12"])
    }

    @Test func `what the backend marks as no-store is in no file`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        try await news.signIn(password: "news")
        #expect(try await news.api.cache.value(news.me).card == "4111-1111")
        news.api.close()
        let files = try FileManager.default.subpathsOfDirectory(atPath: scene.directory)
        #expect(!files.isEmpty)
        for file in files {
            guard let data = FileManager.default.contents(atPath: scene.directory + "/" + file) else { continue }
            #expect(data.range(of: Data("4111-1111".utf8)) == nil, "\(file)")
        }
    }

    @Test func `a bookmark that is set offline is shown at once, after a restart too, and sent once`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        var news = try await scene.client()
        try await news.signIn(password: "news")
        #expect(try await news.api.cache.value(news.bookmarks).items.isEmpty)
        news.api.close()

        news = try await scene.client(isOffline: true)
        try news.setBookmark(true, article: 7)
        news.api.close()

        news = try await scene.client(isOffline: true)
        #expect(news.api.cache.stored(news.bookmarks)?.value?.items.map(\.id) == [7])
        news.api.close()

        news = try await scene.client()
        try await news.api.cache.outbox.drained()
        #expect(scene.backend.count("PUT /articles/7/bookmark") == 1)
        #expect(scene.backend.state.withLock { $0.bookmarks } == [7])
    }

    @Test func `a comment whose reply is lost is one comment`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        try await news.signIn(password: "news")
        let line = "POST /articles/7/comments"
        scene.backend.change { $0.instead[line] = .failure(TransportError(.interrupted, "The reply was lost.")) }
        try news.comment("hello", article: 7)
        await failed(news)
        scene.backend.change { $0.instead[line] = nil }
        scene.clock.advance(by: .seconds(60))
        try await news.api.cache.outbox.drained()
        #expect(scene.backend.count(line) == 2)
        #expect(scene.backend.state.withLock { $0.comments.count } == 1)
    }

    @Test func `twenty requests that meet a 401 share one renewal`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        try await news.signIn(password: "news")
        scene.backend.change { $0.access = [] }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...20 {
                group.addTask {
                    _ = try await news.api.source.fetch(
                        "/bookmarks",
                        [("n", "\(number)")],
                        context: FetchContext(),
                        as: [Int].self
                    )
                }
            }
            try await group.waitForAll()
        }
        #expect(scene.backend.count("POST /token") == 2)
    }

    @Test func `a rejected bookmark is taken back, and kept with its reason until the person decides`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        try await news.signIn(password: "news")
        let reply = ScriptedTransport.Reply.text(
            #"{"title":"There is no article 7."}"#,
            status: .notFound,
            fields: ["Content-Type": "application/json"]
        )
        scene.backend.change { $0.instead["PUT /articles/7/bookmark"] = reply }
        try news.setBookmark(true, article: 7)
        var found: [Outbox.Entry] = []
        for await rejected in news.api.cache.outbox.rejections where !rejected.isEmpty {
            found = rejected
            break
        }
        let entry = try #require(found.first)
        #expect(entry.request?.path == "/articles/7/bookmark")
        #expect(entry.rejection?.status == 404)
        #expect(try await news.api.cache.value(news.bookmarks).items.isEmpty)
        try news.api.cache.outbox.drop(entry.id)
        #expect(news.api.cache.outbox.rejected.isEmpty)
    }

    @Test func `a rejected renewal holds a bookmark until the next sign-in`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        try await news.signIn(password: "news")
        scene.backend.change { state in
            state.access = []
            state.refresh = []
        }
        try news.setBookmark(true, article: 7)
        await failed(news)
        #expect(news.api.session.state == .expired(userID: "ana"))
        #expect(news.api.cache.outbox.rejected.isEmpty)
        try await news.signIn(password: "news")
        try await news.api.cache.outbox.drained()
        #expect(scene.backend.state.withLock { $0.bookmarks } == [7])
    }

    @Test func `a backend that is overloaded is not asked before it says so`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        let busy = ScriptedTransport.Reply.text("", status: .serviceUnavailable, fields: ["Retry-After": "60"])
        scene.backend.change { $0.instead["GET /articles/7"] = busy }
        await #expect(throws: LarderError.self) { _ = try await news.api.cache.value(news.article(7)) }
        scene.backend.change { $0.instead = [:] }
        for id in 7...9 {
            await #expect(throws: LarderError.self) { _ = try await news.api.cache.value(news.article(id)) }
        }
        #expect(scene.backend.log.count == 1)
        scene.clock.advance(by: .seconds(61))
        #expect(try await news.api.cache.value(news.article(7)).id == 7)
    }

    @Test func `a 404 of a gateway removes nothing`() async throws {
        let scene = Scene()
        defer { scene.remove() }
        let news = try await scene.client()
        _ = try await news.api.cache.value(news.article(7))
        scene.clock.advance(by: .seconds(61))
        let gateway = ScriptedTransport.Reply.text(
            "default backend - 404",
            status: .notFound,
            fields: ["Content-Type": "text/plain"]
        )
        scene.backend.change { $0.instead["GET /articles/7"] = gateway }
        await #expect(throws: LarderError.self) { try await news.api.cache.refresh(news.article(7)) }
        #expect(news.api.cache.stored(news.article(7))?.value?.bodyText == "Text 7")
    }
}

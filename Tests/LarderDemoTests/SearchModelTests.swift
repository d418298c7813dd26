import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderTesting
import LarderTime
import LarderTransport
import Observation
import TestSupport
import Testing

@Suite("Search while typing", .oneMinute) @MainActor
struct SearchModelTests {
    /// Waits until a value that depends on observed ones fulfils a condition, by observation alone.
    private func wait<Value>(for value: @MainActor () -> Value, until isReached: (Value) -> Bool) async {
        while !Task.isCancelled {
            let pending = Pending<Bool>()
            let now = withObservationTracking {
                value()
            } onChange: {
                pending.finish(true)
            }
            if isReached(now) { return }
            _ = await pending.value(ifCancelled: false) {}
        }
    }

    private nonisolated static func post(_ number: Int) -> String {
        """
        {"id":"post_\(number)","authorId":"user_1","text":"night train","image":null,"createdAt":"2026-01-01T00:00:00Z",\
        "editedAt":null,"likeCount":0,"likedByMe":false,"version":1,"updatedAt":"2026-01-01T00:00:00Z"}
        """
    }

    /// A page of posts, newest first, or of no people.
    private nonisolated static func page(_ request: TransportRequest, _ posts: [Int], next: String? = nil)
        -> ScriptedTransport.Reply
    {
        let items = request.url.contains("kind=people") ? "" : posts.map(post).joined(separator: ",")
        let cursor = request.url.contains("kind=people") ? "null" : next.map { "\"\($0)\"" } ?? "null"
        return .text(
            "{\"items\":[\(items)],\"nextCursor\":\(cursor),\"previousCursor\":null}",
            fields: [.contentType: "application/json"]
        )
    }

    private func client(
        _ transport: ScriptedTransport,
        _ clock: ManualClock? = nil
    ) async throws -> (client: LarderClient, path: String) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        var configuration = LarderClient.Configuration(transport: transport)
        if let clock {
            configuration.cache.wallClock = clock
            configuration.cache.monotonicClock = clock
            configuration.cache.random = { 0 }
        }
        configuration.services = .none
        configuration.followsLive = false
        return (try await LarderClient(server: "http://test", account: "ana", directory: path, configuration), path)
    }

    @Test func `a search waits for a pause, replaces the one before, and everything shown is derived anew`()
        async throws
    {
        // Answers searches with "train"; others are never answered.
        let (cancelled, cancelling) = AsyncStream.makeStream(of: Void.self)
        let transport = ScriptedTransport { request, _ in
            guard request.url.contains("train") else {
                _ = await Pending<Bool>().value(ifCancelled: false) {}
                cancelling.yield()
                return .failure(TransportError(.cancelled, "cancelled"))
            }
            return Self.page(request, [3, 2, 1])
        }
        let (client, path) = try await client(transport)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let clock = ManualClock()
        let search = SearchModel(client, pause: .milliseconds(250), clock: clock)
        for text in ["n", "ni", "night", "night "] {
            search.text = text
            try await clock.waitForSleepers()
        }
        #expect(transport.requests.isEmpty && search.summary.isEmpty)
        clock.advance(by: .milliseconds(250))
        await transport.waitForRequests(2)
        #expect(transport.requests.allSatisfy { $0.url.contains("q=night&") }, "\(transport.requests.map(\.url))")
        // The next search replaces this one, whose requests are cancelled.
        search.text = "Night train"
        try await clock.waitForSleepers()
        clock.advance(by: .milliseconds(250))
        await wait(for: { search.foundPosts.count }, until: { $0 == 3 })
        await wait(for: { search.isSearching }, until: { !$0 })
        #expect(search.summary == "0 people, 3 posts, 0 liked" && transport.requests.count == 4)
        var ends = cancelled.makeAsyncIterator()
        for _ in 0..<2 { await ends.next(isolation: nil) }
        // The entities are those of the whole cache: a like elsewhere changes what is derived from them.
        try client.likes.set(true, "post_2")
        await wait(for: { search.summary }, until: { $0 == "0 people, 3 posts, 1 liked" })
        // The same words again are answered by the cache.
        search.text = ""
        #expect(search.foundPosts.isEmpty && search.summary.isEmpty)
        search.text = "  night   TRAIN"
        try await clock.waitForSleepers()
        clock.advance(by: .milliseconds(250))
        await wait(for: { search.foundPosts.count }, until: { $0 == 3 })
        #expect(transport.requests.filter { $0.url.contains("/search") }.count == 4)
        client.close()
    }

    @Test func `pages are loaded until there are as many posts as there is room, and no more`() async throws {
        let transport = ScriptedTransport { request, _ in
            guard let after = request.url.firstRange(of: "after=p").map({ request.url[$0.upperBound...] }) else {
                return Self.page(request, Array((81...100).reversed()), next: "p80")
            }
            let end = Int(after.prefix { $0.isNumber }) ?? 0
            if end == 40 { return .failure(TransportError(.unreachable, "a tunnel")) }
            return Self.page(request, Array((end - 19...end).reversed()), next: "p\(end - 20)")
        }
        let (client, path) = try await client(transport)
        defer { try? FileManager.default.removeItem(atPath: path) }
        defer { client.close() }
        let clock = ManualClock()
        let search = SearchModel(client, clock: clock)
        search.room = 10
        search.text = "train"
        try await clock.waitForSleepers()
        clock.advance(by: .milliseconds(250))
        await wait(for: { search.isSearching }, until: { !$0 })
        #expect(search.summary == "0 people, 20+ posts, 0 liked" && transport.requests.count == 2)
        search.room = 25
        #expect(search.foundPosts.count == 20 && search.isSearching, "What was found stays while a page is loaded.")
        await wait(for: { search.isSearching }, until: { !$0 })
        #expect(search.foundPosts.count == 40 && search.foundPosts.last?.id == "post_61")
        // A page that fails is not asked for again and again.
        search.room = 100
        await wait(for: { search.summary }, until: { $0.contains("not up to date") })
        await wait(for: { search.isSearching }, until: { !$0 })
        #expect(search.foundPosts.count == 60 && transport.requests.count == 5, "\(transport.requests.map(\.url))")
    }

    @Test func `pages without a new post end a search`() async throws {
        let transport = ScriptedTransport { request, _ in Self.page(request, [2, 1], next: "p0") }
        let (client, path) = try await client(transport)
        defer { try? FileManager.default.removeItem(atPath: path) }
        defer { client.close() }
        let clock = ManualClock()
        let search = SearchModel(client, clock: clock)
        search.text = "train"
        try await clock.waitForSleepers()
        clock.advance(by: .milliseconds(250))
        await wait(for: { search.isSearching }, until: { !$0 })
        // One page of people, and three of posts.
        #expect(search.foundPosts.count == 2 && transport.requests.count == 4, "\(transport.requests.map(\.url))")
    }

    @Test func `results on a screen are asked for again before they are five minutes old`() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport { request, _ in Self.page(request, [1]) }
        let (client, path) = try await client(transport, clock)
        defer { try? FileManager.default.removeItem(atPath: path) }
        defer { client.close() }
        let pause = ManualClock()
        let shown = SearchModel(client, clock: pause)
        shown.text = "train"
        try await pause.waitForSleepers()
        pause.advance(by: .milliseconds(250))
        await wait(for: { shown.isSearching }, until: { !$0 })
        #expect(shown.notice(at: clock.now) == .updated(.zero) && transport.requests.count == 2)
        clock.advance(by: .seconds(61))
        await wait(for: { shown.notice(at: clock.now) }, until: { $0 == .outdated(.seconds(61)) })
        #expect(transport.requests.count == 2)
        // Four fifths of the bound, so that those of many people are not all asked for at once.
        clock.advance(by: .seconds(179))
        await transport.waitForRequests(4)
        await wait(for: { shown.notice(at: clock.now) }, until: { $0 == .updated(.zero) })
    }
}

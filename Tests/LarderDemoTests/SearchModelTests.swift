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

    private func client(_ transport: ScriptedTransport) async throws -> (client: LarderClient, path: String) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)").path
        var configuration = LarderClient.Configuration(transport: transport)
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
            let items = request.url.contains("kind=people") ? [] : [3, 2, 1].map(Self.post)
            return .text(
                "{\"items\":[\(items.joined(separator: ","))],\"nextCursor\":null,\"previousCursor\":null}",
                fields: [.contentType: "application/json"]
            )
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
}

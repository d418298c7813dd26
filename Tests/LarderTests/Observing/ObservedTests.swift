import Larder
import LarderHTTP
import LarderResources
import LarderTesting
import LarderTime
import LarderTransport
import Observation
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Client: values that views observe", .oneMinute) @MainActor
struct ObservedTests {
    private let fixture = ClientFixture()

    /// Waits until a value that depends on observed ones fulfils a condition, by observation alone.
    private func wait<Value>(for value: @MainActor () -> Value, until isReached: (Value) -> Bool) async {
        while true {
            let pending = Pending<Bool>()
            let now = withObservationTracking {
                value()
            } onChange: {
                pending.finish(true)
            }
            if isReached(now) { return }
            _ = await pending.value(ifCancelled: false) {}
            if Task.isCancelled { return }
        }
    }

    @Test func `a view that reads a snapshot and the outbox is told of a value, of a pending change and of its end`()
        async throws
    {
        let transport = ScriptedTransport { request, _ in
            request.method == .get
                ? ClientFixture.json(#"{"id":"7","title":"One","isStarred":false}"#, [.cacheControl: "max-age=60"])
                : ClientFixture.json(#"{"id":"7","title":"One","isStarred":true}"#, [.cacheControl: "max-age=60"])
        }
        let client = try await fixture.client(transport)
        let (cache, source) = (client.cache, client.source)
        let article = cache.observed(
            Resource<Article>.entity("7") { try await source.fetch("/articles/7", context: $0) }
        )
        let outbox = cache.outbox.observed()
        await wait(for: { article.current?.value?.title }, until: { $0 == "One" })
        fixture.scene.isOnline.withLock { $0 = false }
        try client.write(.put, "/articles/7/star", changing: Article.self, "7") { $0.isStarred = true }
        await wait(for: { article.current?.value?.isStarred }, until: { $0 == true })
        #expect(article.current?.pendingChanges == 1)
        await wait(for: { outbox.current?.pending }, until: { $0 == 1 })
        fixture.scene.isOnline.withLock { $0 = true }
        cache.networkReturned()
        await wait(for: { outbox.current?.isDrained }, until: { $0 == true })
        await wait(for: { article.current?.pendingChanges }, until: { $0 == 0 })
        #expect(article.current?.value?.isStarred == true)
    }

    @Test func `nothing is observed after a holder is released`() async throws {
        let transport = ScriptedTransport { _, _ in
            ClientFixture.json(#"{"id":"7","title":"One","isStarred":false}"#, [.cacheControl: "max-age=60"])
        }
        let client = try await fixture.client(transport)
        let source = client.source
        let resource = Resource<Article>.entity("7") { try await source.fetch("/articles/7", context: $0) }
        var article: Observed<Snapshot<Article>>? = client.cache.observed(resource)
        let isReleased = { [weak article] in article == nil }
        await wait(for: { article?.current?.value?.title }, until: { $0 == "One" })
        article = nil
        #expect(isReleased())
        // The task of the holder is cancelled, and ends when its turn comes.
        await rest()
        try await client.cache.invalidate(resource)
        _ = try await client.cache.value(resource, .cacheOnly)
        await rest()
        #expect(transport.requests.count == 1)
    }
}

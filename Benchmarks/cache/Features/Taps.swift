import Larder
import LarderDemo
import LarderModels
import Measuring
import Synchronization

private struct Page: Decodable, Sendable {
    var items: [Post]
    var nextCursor: String?
}

/// Measures likes: until one is stored and shown, and until a thousand are sent.
func measureTaps(_ stage: Stage) async throws {
    let client = try await stage.client("taps")
    var ids: [String] = []
    var cursor: String?
    repeat {
        let page = try await client.source.fetch(
            "/v1/feed",
            [("limit", "100"), ("after", cursor)],
            context: FetchContext(),
            as: Page.self
        )
        guard let list = page.value else { break }
        try await client.cache.update { update in for post in list.items { update.put(post) } }
        ids += list.items.filter { !$0.likedByMe }.map(\.id)
        cursor = list.nextCursor
    } while cursor != nil && ids.count < 1_000
    precondition(ids.count >= 1_000, "There are fewer than 1,000 posts without a like.")
    // The visible posts come last, after the warm-up.
    ids = ids.prefix(1_000).reversed()

    // Only the 50 newest posts are observed.
    let shown = Atomic<Int>(0)
    let screen = Task {
        for await snapshot in client.feed.snapshots(.cacheFirst) where snapshot.value != nil {
            shown.wrappingAdd(1, ordering: .relaxed)
        }
    }
    while shown.load(ordering: .relaxed) == 0 { await Task.yield() }
    client.cache.outbox.pause()
    let clock = ContinuousClock()
    var (onScreen, elsewhere) = (Samples(), Samples())
    for (index, id) in ids.enumerated() {
        let time = try clock.measure { _ = try client.likes.set(true, id) }
        if index >= 960 { onScreen.add(time, operations: 1) } else { elsewhere.add(time, operations: 1) }
    }
    elsewhere.show("a tap: durable and visible in reads", goal: "60 µs")
    onScreen.show("    on a post in an observed list of 50", goal: "60 µs")
    let before = await stage.count("POST", "/v1/likes")
    let start = clock.now
    client.cache.outbox.resume()
    try await client.cache.outbox.drained()
    let time = clock.now - start
    say(
        "1,000 likes flushed in \(await stage.count("POST", "/v1/likes") - before) requests and \(time)  goal 20 requests"
    )
    screen.cancel()
    client.close()
}

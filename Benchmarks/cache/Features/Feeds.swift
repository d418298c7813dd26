import Larder
import LarderDemo
import LarderModels
import Measuring

/// Measures reads of a feed in memory.
func measureFeed(_ stage: Stage) async throws {
    let client = try await stage.client("feed")
    let newest = client.feed.newest
    let count = try await client.cache.value(newest).items.count
    precondition(count == 50, "The feed has fewer than 50 posts.")
    let clock = ContinuousClock()
    var (warm, anew) = (Samples(), Samples())
    for _ in 0..<31 {
        warm.add(
            try await clock.measure { for _ in 0..<1_000 { _ = try await client.cache.value(newest) } },
            operations: 1_000
        )
        for likes in 0..<50 {
            let id = try await client.cache.value(newest).items[likes].id
            try await client.cache.update { $0.modify(Post.self, id) { $0.likeCount += 1 } }
            anew.add(try await clock.measure { _ = try await client.cache.value(newest) }, operations: 1)
        }
    }
    warm.show("warm feed of 50 posts", goal: "50 µs")
    anew.show("    after one of them has changed", goal: "50 µs")
    client.close()
}

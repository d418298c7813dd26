import LarderTesting
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

@Suite("Timelines: registry", .oneMinute)
struct TimelineRegistryTests {
    let scene = CacheScene()
    let source = PageSource()

    @Test func `a refresh by a new reader drops items without overlap on request`() async throws {
        let cache = try scene.cache(inMemory: true)
        var feed = source.resource()
        source.prepare([3, 2, 1], next: "after 1")
        // The timeline is released, and the node that holds its values stays in memory.
        try await cache.timeline(feed).refresh()
        source.prepare([9, 8, 7], next: "after 7")
        feed.dropsBehindGap = true
        try await cache.timeline(feed).refresh()
        #expect(try await cache.line(feed) == "9 8 7")
    }
}

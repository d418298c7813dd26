import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

@Suite("Live sync: politeness", .oneMinute)
struct LiveSyncTests {
    private let scene = CacheScene()

    @Test func `a channel that is rejected with Retry-After is not opened before, also if the network returns`()
        async throws
    {
        let cache = try scene.cache()
        let clock = scene.clock
        let opened = Mutex<[MonotonicTime]>([])
        let feed = ChangeFeed(
            "test",
            read: { token throws(LarderError) in ChangeFeed.Batch([], nextToken: token, hasMore: false) },
            present: { () throws(LarderError) in "1" },
            invalidateAll: { _ in }
        )
        let source = LiveSync.Source([.webSocket]) { _, _ throws(LarderError) in
            opened.withLock { $0.append(clock.uptime) }
            throw LarderError(.offline, "The server is busy.", status: 503, retryAfter: .seconds(60))
        }
        let live = LiveSync(ChangeSync(feed, into: cache), source, in: cache)
        let states = SequenceRecorder(live.states)
        let running = Task { await live.run() }
        await states.wait { $0.last == .waiting(failures: 1) }
        try await clock.waitForSleepers()
        cache.networkReturned()
        clock.advance(by: .seconds(59))
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(2))
        await states.wait { $0.count { $0 == .connecting(.webSocket) } >= 2 }
        try await clock.waitForSleepers()
        let times = opened.withLock { $0 }
        #expect(times.count == 2 && times.last.map { $0 - times[0] >= .seconds(60) } == true, "\(times)")
        running.cancel()
        await running.value
    }
}

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

    private struct EndedChannel: LiveSync.Channel {
        func receive() async throws(LarderError) -> LiveSync.Message? { nil }
    }

    /// A live sync whose channels open after `gate`, also when they are cancelled.
    private func live(_ gate: TransportGate) throws -> LiveSync {
        let source = LiveSync.Source([.webSocket]) { _, _ throws(LarderError) in
            let passing = Task { try await gate.pass() }
            do { try await passing.value } catch { throw LarderError(error) }
            return EndedChannel()
        }
        return LiveSync(source, in: try scene.cache()) { _ in }
    }

    @Test func `a start waits for the end of the run that was stopped`() async throws {
        let gate = TransportGate()
        let live = try live(gate)
        live.start()
        await gate.waitForHeld()
        live.stop()
        live.start()
        await rest()
        #expect(gate.heldCount == 1)
        gate.release()
        await gate.waitForHeld()
        #expect(live.state == .connecting(.webSocket))
        live.stop()
        gate.open()
    }

    @Test func `it runs only while it is wanted and allowed`() async throws {
        let gate = TransportGate()
        let live = try live(gate)
        live.setAllowed(false)
        live.start()
        #expect(!live.isRunning)
        live.setAllowed(true)
        #expect(live.isRunning)
        live.setAllowed(false)
        #expect(!live.isRunning)
        live.stop()
        live.setAllowed(true)
        #expect(!live.isRunning)
        live.start()
        #expect(live.isRunning)
        live.stop()
        #expect(!live.isRunning)
        gate.open()
    }
}

import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Timeout keeper", .oneMinute) struct TimeoutKeeperTests {
    private func time(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func `timers fire in order, and removed ones do not`() async throws {
        let clock = ManualClock()
        let keeper = TimeoutKeeper(clock, sharesSleep: true)
        let called = Mutex<[Int]>([])
        let ended = Pending<Bool>()
        _ = keeper.set(time(20)) { called.withLock { $0.append(20) } }
        let removed = keeper.set(time(15)) { called.withLock { $0.append(15) } }
        _ = keeper.set(time(10)) { called.withLock { $0.append(10) } }
        _ = keeper.set(time(30)) { ended.finish(true) }
        keeper.remove(removed)
        keeper.remove(removed)
        keeper.remove(nil)
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(30))
        #expect(await ended.value(ifCancelled: false))
        #expect(called.withLock { $0 } == [10, 20])
        #expect(clock.sleeperCount == 0)
    }

    @Test func `one task sleeps for any number of timers, and none without timers`() async throws {
        let clock = ManualClock()
        let keeper = TimeoutKeeper(clock, sharesSleep: true)
        let ids = (1...1_000).map { keeper.set(time(5 + Int64($0))) {} }
        try await clock.waitForSleepers()
        #expect(clock.sleeperCount == 1 && clock.nextWakeUp == time(6))
        for id in ids { keeper.remove(id) }
        let called = Pending<Bool>()
        _ = keeper.set(time(7)) { called.finish(true) }
        clock.advance(by: .seconds(6))
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(1))
        #expect(await called.value(ifCancelled: false))
        #expect(clock.sleeperCount == 0)
    }

    @Test func `the sleeping task does not retain the keeper`() async throws {
        let clock = ManualClock()
        var keeper: TimeoutKeeper? = TimeoutKeeper(clock, sharesSleep: true)
        weak let watched = keeper
        _ = keeper?.set(time(5)) {}
        try await clock.waitForSleepers()
        keeper = nil
        #expect(watched == nil)
    }

    @Test func `on a manual clock each timer is a sleeper`() async throws {
        let clock = ManualClock()
        let keeper = TimeoutKeeper(clock)
        let called = Pending<Bool>()
        let removed = keeper.set(time(5)) {}
        _ = keeper.set(time(6)) { called.finish(true) }
        try await clock.waitForSleepers(2)
        keeper.remove(removed)
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .seconds(6))
        #expect(await called.value(ifCancelled: false))
    }
}

import LarderTime
import TestSupport
import Testing

@Suite("Sleepers", .oneMinute)
struct SleeperTests {
    @Test func `a sleeper on a manual clock wakes at its deadline and not before`() async throws {
        let clock = ManualClock()
        let until = clock.uptime + .seconds(10)
        let sleeping = Task { () throws -> MonotonicTime in
            try await clock.sleep(until: until)
            return clock.uptime
        }
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(9))
        #expect(clock.sleeperCount == 1)
        #expect(clock.nextWakeUp == until)
        clock.advance(by: .seconds(1))
        #expect(try await sleeping.value == until)
        #expect(clock.sleeperCount == 0)
    }

    @Test func `a sleep until a past time returns immediately`() async throws {
        let clock = ManualClock()
        let start = clock.uptime
        await #expect(throws: Never.self) { try await clock.sleep(until: start) }
        #expect(clock.sleeperCount == 0 && clock.uptime == start)
        // A past deadline stays past when the clock changes.
        let now = SystemMonotonicClock().uptime
        await #expect(throws: Never.self) { try await SystemMonotonicClock().sleep(until: now) }
    }

    @Test func `a cancelled sleeper throws immediately and is removed`() async throws {
        let clock = ManualClock()
        let sleeping = Task { try await clock.sleep(until: clock.uptime + .seconds(10)) }
        try await clock.waitForSleepers()
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
        #expect(clock.sleeperCount == 0)
        let late = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            try await clock.sleep(until: clock.uptime)
        }
        await #expect(throws: CancellationError.self) { try await late.value }
    }

    @Test func `a sleep on the system clock ends when its task is cancelled`() async throws {
        let clock = SystemMonotonicClock()
        let end = clock.uptime + .seconds(3_600)
        let sleeping = Task { try await clock.sleep(until: end) }
        sleeping.cancel()
        await #expect(throws: CancellationError.self) { try await sleeping.value }
        #expect(clock.uptime < end)
    }
}

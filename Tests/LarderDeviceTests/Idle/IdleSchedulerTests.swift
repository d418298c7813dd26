import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderDevice

@Suite("Idle scheduler", .oneMinute)
struct IdleSchedulerTests {
    private let clock = ManualClock()

    @Test func `a queue gives work oldest first while idle, and old work also during an interaction`() {
        var queue = IdleQueue<Int>(quiet: .milliseconds(100), ageMaximum: .milliseconds(500))
        for index in 0..<3 { queue.add(index, at: clock.uptime) }
        #expect(queue.delay(at: clock.uptime) == .zero)
        #expect(queue.takeDue(at: clock.uptime) == 0)
        queue.noteInteraction(at: clock.uptime)
        #expect(queue.takeDue(at: clock.uptime) == nil && queue.delay(at: clock.uptime) == .milliseconds(100))
        for _ in 0..<5 {
            clock.advance(by: .milliseconds(90))
            queue.noteInteraction(at: clock.uptime)
            #expect(queue.takeDue(at: clock.uptime) == nil)
        }
        #expect(queue.delay(at: clock.uptime) == .milliseconds(50))
        clock.advance(by: .milliseconds(50))
        queue.noteInteraction(at: clock.uptime)
        #expect(queue.takeDue(at: clock.uptime) == 1 && queue.takeDue(at: clock.uptime) == 2)
        #expect(queue.delay(at: clock.uptime) == nil && queue.count == 0)
    }

    @Test func `work runs at once on the caller's thread while nobody interacts`() {
        let done = Mutex<[Int]>([])
        let scheduler = IdleScheduler(clock: clock)
        for index in 0..<7 {
            scheduler.submit {
                index != 2
            } run: {
                done.withLock { $0.append(index) }
            }
        }
        #expect(done.withLock { $0 } == [0, 1, 3, 4, 5, 6])
        scheduler.interacted()
        clock.advance(by: .milliseconds(100))
        scheduler.submit { done.withLock { $0.append(7) } }
        #expect(done.withLock { $0.last } == 7 && clock.nextWakeUp == nil)
    }

    @Test func `after an interaction work runs in order, a few pieces at a time, and unwanted work is dropped`()
        async throws
    {
        let done = Mutex<[Int]>([])
        let scheduler = IdleScheduler(clock: clock)
        scheduler.interacted()
        for index in 0..<7 {
            scheduler.submit {
                index != 1 && index != 2
            } run: {
                done.withLock { $0.append(index) }
            }
        }
        #expect(done.withLock { $0 }.isEmpty)
        try await clock.waitForSleepers()
        #expect(clock.nextWakeUp == clock.uptime + .milliseconds(100))
        var seen: [[Int]] = []
        for step in [100, 8] {
            clock.advance(by: .milliseconds(step))
            try await clock.waitForSleepers()
            seen.append(done.withLock { $0 })
        }
        #expect(seen == [[0, 3], [0, 3, 4, 5]])
        // No work is left after this step, so there is no sleeper.
        clock.advance(by: .milliseconds(8))
        await rest()
        #expect(done.withLock { $0.count == 5 && $0.last == 6 })
    }

    @Test func `a released scheduler leaves no task behind`() async throws {
        let done = Mutex<[Int]>([])
        do {
            let scheduler = IdleScheduler(clock: clock)
            scheduler.interacted()
            scheduler.submit { done.withLock { $0.append(1) } }
            try await clock.waitForSleepers()
        }
        await rest()
        #expect(clock.nextWakeUp == nil)
        #expect(done.withLock { $0 }.isEmpty)
    }
}

import LarderTime
import TestSupport
import Testing

@testable import LarderDevice
@testable import LarderEvents

@Suite("Network return: spread of clients", .oneMinute)
struct ResumeTests {
    @Test func `ten thousand clients that come back at once arrive at less than the server's limit`() {
        // The server's limit is 150 requests a second. 10,000 clients over 100 s are 100 a second on average.
        let limit = 150
        for seed in UInt64(1)...5 {
            var generator = SeededGenerator(seed: seed)
            let clock = ManualClock()
            var arrivals: [Int] = []
            var clients = (0..<10_000).map { _ in
                ResumeSchedule(.seconds(100), seed: generator.next())
            }
            for index in clients.indices { clients[index].note(.offline, at: clock.uptime) }
            clock.advance(by: .seconds(600))
            for index in clients.indices { clients[index].note(.good, at: clock.uptime) }
            for _ in 0..<101 {
                clock.advance(by: .seconds(1))
                var count = 0
                for index in clients.indices where clients[index].take(at: clock.uptime) { count += 1 }
                arrivals.append(count)
            }
            #expect(arrivals.reduce(0, +) == 10_000, "seed \(seed): everybody comes back")
            #expect(arrivals.max() ?? 0 <= limit, "seed \(seed): \(arrivals.max() ?? 0) in one second")
            #expect(arrivals.prefix(100).min() ?? 0 >= 60, "seed \(seed): and the time is used")
        }
    }

    @Test func `delays of neighbouring seeds and rounds are unrelated`() {
        func delay(_ seed: UInt64, _ round: UInt64) -> Duration {
            ResumeSchedule.delay(within: .seconds(64), seed: seed, round: round)
        }
        var cells = [Int](repeating: 0, count: 64)
        for seed in UInt64(0)..<6_400 { cells[Int(delay(seed, 1).components.seconds)] += 1 }
        #expect((cells.min() ?? 0) > 60 && (cells.max() ?? 0) < 150)
        let early = (UInt64(0)..<1_000).filter { delay($0, 1) < .seconds(8) }
        let again = early.filter { delay($0, 2) < .seconds(8) }
        #expect(again.count < early.count / 3, "Who was first is not first again.")
        #expect(delay(3, 4) == delay(3, 4))
        #expect(ResumeSchedule.delay(within: .zero, seed: 1, round: 1) == .zero)
        #expect(ResumeSchedule.delay(within: .seconds(-5), seed: 1, round: 1) == .zero)
    }

    @Test func `a flapping network causes no resume`() {
        var schedule = ResumeSchedule(.seconds(1_000), seed: 9)
        var now = MonotonicTime(nanoseconds: 0)
        for _ in 0..<100 {
            schedule.note(.offline, at: now)
            #expect(schedule.due == nil)
            now = now + .milliseconds(10)
            schedule.note(.constrained, at: now)
            schedule.note(.good, at: now)
            let taken = schedule.take(at: now)
            #expect(!taken || schedule.due == nil)
        }
        now = now + .seconds(1_000)
        let first = schedule.take(at: now)
        let second = schedule.take(at: now)
        #expect(first && !second)
    }
}

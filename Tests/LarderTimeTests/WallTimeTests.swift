import Synchronization
import TestSupport
import Testing

@testable import LarderTime

@Suite("Wall time", .oneMinute)
struct WallTimeTests {
    @Test(
        "reads what RFC 3339 allows",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-06-30T18:00:00.000Z", 1_782_842_400_000),
            ("2026-06-30t20:00:00.5+02:00", 1_782_842_400_500), ("1969-12-31T23:59:59.999Z", -1),
            ("2000-02-29T12:00:00-00:30", 951_827_400_000),
        ]
    )
    func reads(text: String, milliseconds: Int) {
        #expect(WallTime(rfc3339: text)?.milliseconds == Int64(milliseconds))
    }

    @Test(
        "rejects what is no time",
        arguments: [
            "", "2026-06-30", "2026-06-30T18:00:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
            "2026-06-30T24:00:00Z", "2026-06-30T18:00:00.Z", "2026-06-30T18:00:00Zx", "2026-06-30 18:00:00Z",
            "2026-06-30T18:00:00+24:00", "२०२६-06-30T18:00:00Z",
        ]
    )
    func rejects(text: String) { #expect(WallTime(rfc3339: text) == nil) }

    @Test func `formatted times are parsed to the same second`() {
        let seed: UInt64 = 0x5EED_0001
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let time = WallTime(milliseconds: Int64(random.uniform(in: -8_000_000_000_000..<8_800_000_000_000)))
            #expect(WallTime(rfc3339: time.rfc3339()) == time, "seed \(seed), \(time)")
        }
    }

    @Test func `day numbers match an independent calendar computation`() {
        // Each day of four centuries, by the rule for leap years alone.
        var (year, month, day, weekday) = (1800, 1, 1, 3)
        var time = WallTime(rfc3339: "1800-01-01T00:00:00Z")
        while year < 2200 {
            guard let current = time else { break }
            let civil = CivilTime(current)
            #expect((civil.year, civil.month, civil.day, civil.weekday) == (year, month, day, weekday))
            day += 1
            weekday = (weekday + 1) % 7
            if day > CivilTime.days(in: month, of: year) { (day, month) = (1, month + 1) }
            if month > 12 { (month, year) = (1, year + 1) }
            time = current + .seconds(86_400)
        }
        #expect(year == 2200)
    }

    @Test func `arithmetic saturates at the ends of the range`() {
        let end = WallTime(nanosecondsSinceEpoch: .max)
        #expect(end + .seconds(1) == end)
        #expect(WallTime(seconds: .max) == end)
        #expect(WallTime(nanosecondsSinceEpoch: .min) - .seconds(1) == WallTime(nanosecondsSinceEpoch: .min))
        #expect(WallTime(milliseconds: -1).seconds == -1)
    }
}

@Suite("Manual clock", .oneMinute)
struct ManualClockTests {
    @Test func `advance moves both clocks, and set moves the wall clock only`() {
        let clock = ManualClock(WallTime(seconds: 100))
        clock.advance(by: .seconds(5))
        #expect(clock.now == WallTime(seconds: 105))
        clock.set(wall: WallTime(seconds: 7))
        #expect(clock.now == WallTime(seconds: 7))
        #expect(clock.uptime == MonotonicTime(nanoseconds: 5_000_000_000))
    }

    @Test func `observers are called after the time has changed, until they are released`() {
        let clock = ManualClock(WallTime(seconds: 0))
        let seen = Mutex<[Int64]>([])
        var registration: EventRegistration? = clock.onJump { seen.withLock { $0.append(clock.now.seconds) } }
        clock.advance(by: .seconds(1))
        #expect(seen.withLock { $0 } == [1])
        withExtendedLifetime(registration) {}
        registration = nil
        clock.advance(by: .seconds(1))
        #expect(seen.withLock { $0 } == [1])
    }
}

@Suite("Seeded generator", .oneMinute)
struct SeededGeneratorTests {
    @Test func `a seed always gives the same numbers`() {
        var random = SeededGenerator(seed: 42)
        #expect([random.next(), random.next()] == [0x1578_0B2E_0C2E_C716, 0x6104_D986_6D11_3A7E])
    }

    @Test func `numbers cover their range, including both ends`() {
        var random = SeededGenerator(seed: 7)
        let numbers = (0..<1_000).map { _ in random.uniform(in: -3..<4) }
        #expect(Set(numbers) == Set(-3..<4))
    }

    @Test func `the lowest and highest times are formatted like any other`() {
        #expect(WallTime(nanosecondsSinceEpoch: .min).rfc3339() == "1677-09-21T00:12:43.145Z")
        #expect(WallTime(nanosecondsSinceEpoch: .max).rfc3339() == "2262-04-11T23:47:16.854Z")
    }
}

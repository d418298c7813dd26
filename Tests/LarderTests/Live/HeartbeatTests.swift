import LarderTime
import TestSupport
import Testing

@testable import Larder

@Suite("Heartbeat", .oneMinute)
struct HeartbeatTests {
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func `it asks after silence, and gives up when nothing comes then`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        #expect(heart.deadline == at(10))
        #expect(heart.beat(at: at(9)) == .nothing)
        #expect(heart.beat(at: at(10)) == .ping)
        #expect(heart.beat(at: at(12)) == .nothing && heart.deadline == at(13))
        #expect(heart.beat(at: at(13)) == .silent)
    }

    @Test func `anything that comes is a sign of life`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        heart.heard(at: at(9))
        #expect(heart.beat(at: at(10)) == .nothing)
        #expect(heart.beat(at: at(19)) == .ping)
        heart.heard(at: at(20))
        #expect(heart.beat(at: at(25)) == .nothing && heart.deadline == at(30))
    }

    @Test func `who has slept asks first, whatever time it is`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        #expect(heart.beat(at: at(3_600)) == .ping)
        #expect(heart.beat(at: at(3_602)) == .nothing)
    }

    @Test func `while nothing is read nothing is expected, and without an interval never`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        heart.hold()
        #expect(heart.deadline == nil && heart.beat(at: at(100)) == .nothing)
        heart.resume(at: at(100))
        #expect(heart.deadline == at(110))
        #expect(Heartbeat(interval: nil, timeout: .zero, now: at(0)).deadline == nil)
    }
}

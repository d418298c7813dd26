import LarderTime
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Heartbeat", .oneMinute)
struct HeartbeatTests {
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func `silence leads to a ping, and further silence to a failure`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        #expect(heart.deadline == at(10))
        #expect(heart.beat(at: at(9)) == .nothing)
        #expect(heart.beat(at: at(10)) == .ping)
        #expect(heart.beat(at: at(12)) == .nothing && heart.deadline == at(13))
        #expect(heart.beat(at: at(13)) == .silent)
    }

    @Test func `any received byte resets the heartbeat`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        heart.heard(at: at(9))
        #expect(heart.beat(at: at(10)) == .nothing)
        #expect(heart.beat(at: at(19)) == .ping)
        heart.heard(at: at(20))
        #expect(heart.beat(at: at(25)) == .nothing && heart.deadline == at(30))
    }

    @Test func `after a suspension a ping is sent before the connection fails`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        #expect(heart.beat(at: at(3_600)) == .ping)
        #expect(heart.beat(at: at(3_602)) == .nothing)
    }

    @Test func `paused reading stops the heartbeat, and so does a missing interval`() {
        var heart = Heartbeat(interval: .seconds(10), timeout: .seconds(3), now: at(0))
        heart.hold()
        #expect(heart.deadline == nil && heart.beat(at: at(100)) == .nothing)
        heart.resume(at: at(100))
        #expect(heart.deadline == at(110))
        #expect(Heartbeat(interval: nil, timeout: .zero, now: at(0)).deadline == nil)
    }
}

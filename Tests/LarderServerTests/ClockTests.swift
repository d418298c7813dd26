import LarderCoding
import LarderEngine
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderBackend
@testable import LarderServer

@Suite("World clocks", .oneMinute)
struct ClockTests {
    /// Opens an event stream of `ana` and waits until it is a reader with a heartbeat.
    private func openStream(_ stage: Stage) async throws -> RawClient {
        let stream = try stage.send("GET", "/v1/live/events")
        _ = try await stream.read(until: "event: hello")
        await reached { stage.world.clock.untilNextTimer != nil }
        return stream
    }

    private func heartbeats(_ bytes: [UInt8]) -> Int {
        String(decoding: bytes, as: UTF8.self).split(separator: ": alive", omittingEmptySubsequences: false).count - 1
    }

    private func post(_ stage: Stage) {
        stage.world.perform(ScriptedAction("POST", "/v1/posts", as: "ana", body: #"{"text":"new"}"#))
    }

    @Test func `an advance over many heartbeats sends one, and heartbeats continue`() async throws {
        let stage = try Stage()
        let stream = try await openStream(stage)
        stage.world.clock.advance(by: .seconds(1_000))
        post(stage)
        #expect(heartbeats(try await stream.read(until: "event: change")) == 1)
        #expect(stage.world.clock.untilNextTimer == .seconds(20))
        stage.world.clock.advance(by: .seconds(20))
        post(stage)
        #expect(heartbeats(try await stream.read(until: "event: change")) == 1)
        stage.world.clock.advance(by: .seconds(29))
        post(stage)
        #expect(heartbeats(try await stream.read(until: "event: change")) == 0)
    }

    @Test func `heartbeats stop without readers and restart for the next reader`() async throws {
        let stage = try Stage()
        for _ in 0..<2 {
            let stream = try await openStream(stage)
            stage.world.clock.advance(by: .seconds(30))
            _ = try await stream.read(until: ": alive")
            stream.resetsAtEnd()
            _ = consume stream
            await reached { stage.world.world.live.readerCount == 0 }
            stage.world.clock.advance(by: .seconds(30))
            #expect(stage.world.clock.untilNextTimer == nil)
        }
    }

    @Test func `a timer beyond the end of the clock's range never runs`() {
        let manual = ManualClock()
        let clock = WorldClock(wall: manual, monotonic: manual)
        clock.freeze()
        clock.advance(by: .seconds(10_000_000_000))
        let runs = Atomic<Int>(0)
        @Sendable func again() {
            // Bounded, so that the test ends even if the timer is always due.
            guard runs.add(1, ordering: .relaxed).newValue < 1_000 else { return }
            _ = clock.schedule(after: .seconds(30)) { again() }
        }
        _ = clock.schedule(after: .seconds(30)) { again() }
        clock.advance(by: .seconds(60))
        clock.advanceToNextTimer()
        #expect(runs.load(ordering: .relaxed) == 0)
        #expect(clock.untilNextTimer == nil)
        _ = clock.schedule(after: .zero) { runs.add(1, ordering: .relaxed) }
        #expect(runs.load(ordering: .relaxed) == 1)
    }

    @Test func `an advance beyond the clock's range ends although a reader is connected`() async throws {
        let stage = try Stage()
        stage.world.clock.advance(by: .seconds(7_000_000_000))
        let stream = try await openStream(stage)
        stage.world.clock.advance(by: .seconds(3_000_000_000))
        #expect(stage.world.clock.untilNextTimer == nil)
        #expect(try await stage.ask("GET", "/v1/feed").status == 200)
        _ = try await stream.read(until: ": alive")
    }

    @Test func `a movement beyond the range is rejected over HTTP`() async throws {
        let stage = try Stage()
        func put(_ time: String) async throws -> RawReply {
            try await stage.ask("PUT", "/_larder/clock", #"{"time":"\#(time)"}"#)
        }
        #expect(try await put("2250-12-31T00:00:00Z").status == 200)
        // The date would exceed its range.
        let far = try await stage.ask("POST", "/_larder/clock/advance", #"{"seconds":1000000000}"#)
        #expect(far.status == 422)
        #expect(try far.json["errors"]?[0]?["pointer"] == .string("/seconds"))
        #expect(try await put("2020-01-01T00:00:00Z").status == 200)
        // Setting the date back does not change the uptime.
        let again = try await put("2250-12-31T00:00:00Z")
        #expect(again.status == 422)
        #expect(try again.json["errors"]?[0]?["pointer"] == .string("/time"))
        let clock = try await stage.ask("GET", "/_larder/clock").json
        #expect(clock["time"] == .string("2020-01-01T00:00:00.000Z"))
    }

    private static let latency = FaultAction.latency(
        connect: .fixed(.seconds(1)),
        firstByte: .fixed(.seconds(1)),
        body: .fixed(.seconds(1))
    )

    @Test(arguments: [1, 2])
    func `one advance runs the timers that follow from its timers, each at its time`(_ loops: Int) async throws {
        let stage = try Stage { $0.server.loops = loops }
        let start = stage.world.clock.now
        try stage.world.set(Fault(Self.latency, when: FaultMatch("GET", "/v1/feed")))
        try stage.world.set(Fault(.drip(bytes: 20, every: .milliseconds(500)), when: FaultMatch("GET", "/v1/me")))
        let clients = [try stage.send("GET", "/v1/feed?limit=1"), try stage.send("GET", "/v1/me")]
        await reached { stage.world.world.clock.waitCount == 2 }
        stage.world.clock.advance(by: .seconds(60))
        #expect(stage.world.clock.untilNextTimer == nil)
        guard stage.world.clock.untilNextTimer == nil else { return }
        for client in clients { #expect(try await client.reply().status == 200) }
        let records = await stage.world.journal()
        #expect(records.first { $0.target.hasPrefix("/v1/feed") }?.at == start + .seconds(3))
        let dripped = try #require(records.first { $0.target == "/v1/me" })
        #expect(dripped.at == start + dripped.injected && dripped.injected > .seconds(1))
    }

    @Test func `one advance over HTTP ends a latency with several parts`() async throws {
        let stage = try Stage()
        try stage.world.set(Fault(Self.latency, when: FaultMatch("GET", "/v1/feed")))
        let client = try stage.send("GET", "/v1/feed?limit=1")
        await reached { stage.world.clock.untilNextTimer != nil }
        #expect(try await stage.ask("POST", "/_larder/clock/advance", #"{"seconds": 3}"#).status == 200)
        let clock = try await stage.ask("GET", "/_larder/clock")
        #expect(try clock.json["nextTimerInSeconds"] == nil, "\(clock.text)")
        #expect(client.hasNews)
    }
}

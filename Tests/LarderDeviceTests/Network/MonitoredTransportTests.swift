import Larder
import LarderDevice
import LarderEvents
import LarderHTTP
import LarderTelemetry
import LarderTesting
import LarderTime
import LarderTransport
import Synchronization
import TestSupport
import Testing

@Suite("Monitored transport", .oneMinute)
struct MonitoredTransportTests {
    /// A transport whose exchanges take time on a manual clock.
    private struct SlowTransport: Transport {
        let clock: ManualClock
        let latency: Duration
        let pieces: [(bytes: Int, time: Duration)]
        var failure: TransportError?

        func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
            clock.advance(by: latency)
            let left = Mutex(pieces)
            let (clock, failure) = (clock, failure)
            return TransportStream(
                status: .ok,
                fields: [:],
                body: TransportStream.Body { () async throws(TransportError) in
                    guard let piece = left.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
                        if let failure { throw failure }
                        return nil
                    }
                    clock.advance(by: piece.time)
                    return [UInt8](repeating: 1, count: piece.bytes)
                }
            )
        }
    }

    private let clock = ManualClock()
    private let source = NetworkMonitor.ManualSource()
    private let telemetry: Telemetry
    private let monitor: NetworkMonitor
    private let request = TransportRequest(url: "http://example.com/x", body: [1, 2])

    init() {
        telemetry = Telemetry(wall: clock, monotonic: clock)
        monitor = NetworkMonitor(source: source, configuration: .init(seed: 1), clock: clock)
    }

    private func transport(_ base: any Transport, rejectsOffline: Bool = false) -> MonitoredTransport {
        MonitoredTransport(
            base,
            monitor: monitor,
            rejectsOffline: rejectsOffline,
            clock: clock,
            onExchange: { [telemetry] in telemetry.record($0, feature: "feed") }
        )
    }

    @Test func `exchanges are measured without the reader's own time between pieces`()
        async throws
    {
        let base = SlowTransport(
            clock: clock,
            latency: .milliseconds(200),
            pieces: [(20_000, .milliseconds(100)), (20_000, .milliseconds(100))]
        )
        let stream = try await transport(base).open(request)
        var bytes = 0
        for try await piece in stream.body {
            bytes += piece.count
            clock.advance(by: .seconds(60))
        }
        #expect(bytes == 40_000)
        let quality = monitor.current.quality
        #expect(quality.latency.map { $0 > .milliseconds(199) && $0 < .milliseconds(201) } == true)
        #expect(quality.bytesPerSecond.map { abs($0 - 200_000) < 1 } == true)
        let feature = telemetry.totals.features["feed"]
        #expect(feature?.bytesReceived == 40_000 && feature?.bytesSent == 2 && feature?.requests.count == 1)
        #expect(telemetry.totals.statuses == ["2xx": 1])
    }

    @Test func `failures are reported with their code, and three in a row mean offline`() async {
        let failing = transport(
            SlowTransport(clock: clock, latency: .seconds(1), pieces: [], failure: TransportError(.unreachable, ""))
        )
        for _ in 0..<3 { await #expect(throws: TransportError.self) { try await failing.send(request) } }
        #expect(monitor.isOffline && telemetry.totals.failures == ["unreachable": 3])
    }

    @Test func `interrupted content counts as broken, cancelled content does not`() async throws {
        let broken = transport(
            SlowTransport(clock: clock, latency: .zero, pieces: [(5, .zero)], failure: TransportError(.interrupted, ""))
        )
        for _ in 0..<3 {
            let stream = try await broken.open(request)
            await #expect(throws: TransportError.self) { for try await _ in stream.body {} }
        }
        #expect(monitor.level == .constrained && telemetry.totals.failures == ["interrupted": 3])

        clock.advance(by: .seconds(600))
        clock.advance(by: .seconds(600))
        _ = monitor.level
        let wanted = transport(SlowTransport(clock: clock, latency: .zero, pieces: [(5, .zero), (5, .zero)]))
        for _ in 0..<3 {
            let stream = try await wanted.open(request)
            var iterator = stream.body.makeAsyncIterator()
            _ = try await iterator.next()
        }
        #expect(telemetry.totals.failures == ["interrupted": 3, "cancelled": 3])
        #expect(monitor.current.quality.failureShare.map { $0 < 0.001 } == true)
    }

    @Test func `while offline nothing is sent except probes`() async throws {
        let unreachable = ScriptedTransport.Reply.failure(TransportError(.unreachable, ""))
        let script = ScriptedTransport(script: [unreachable, unreachable, unreachable, .text("")])
        let guarded = transport(script, rejectsOffline: true)
        for _ in 0..<10 { await #expect(throws: TransportError.self) { try await guarded.send(request) } }
        #expect(script.requests.count == 3, "The others were rejected before they left.")
        clock.advance(by: .seconds(2))
        #expect(try await guarded.send(request).status == .ok)
        #expect(script.requests.count == 4 && monitor.level == .constrained)
        source.set(isConnected: false)
        clock.advance(by: .seconds(600))
        await #expect(throws: TransportError.self) { try await guarded.send(request) }
        #expect(script.requests.count == 4)
    }

    @Test func `a response that is slow by design does not affect the measurements`() async throws {
        let base = SlowTransport(clock: clock, latency: .seconds(25), pieces: [(20_000, .seconds(600))])
        let patient = MonitoredTransport(base, monitor: monitor, clock: clock)
        var held = request
        held.isLongPoll = true
        for _ in 0..<4 {
            _ = try await patient.send(held)
            for try await _ in try await patient.open(held).body {}
        }
        #expect(monitor.level == .good && monitor.current.quality.latency == nil)
        let slow = SlowTransport(clock: clock, latency: .seconds(2), pieces: [])
        let measured = MonitoredTransport(slow, monitor: monitor, clock: clock)
        for _ in 0..<4 { _ = try await measured.send(request) }
        #expect(monitor.level == .constrained)
    }

    @Test func `requests count as in flight until their content has ended, and uploads by what was sent`() async throws
    {
        let gate = TransportGate()
        let scripted = ScriptedTransport { request, _ throws(TransportError) in
            request.method == .put ? .text("ok").held(by: gate) : .text("ok")
        }
        let monitored = MonitoredTransport(
            scripted,
            monitor: monitor,
            clock: clock,
            onExchange: { [telemetry] in telemetry.record($0) }
        )
        var upload = TransportRequest(method: .put, url: "http://example.com/x")
        upload.upload = RequestBody([1, 2, 3])
        let sending = Task { [upload] in try await monitored.send(upload) }
        await gate.waitForHeld()
        #expect(monitor.requestsInFlight == 1)
        do {
            let stream = try await monitored.open(TransportRequest(url: "http://example.com/y"))
            #expect(monitor.requestsInFlight == 2)
            _ = try await stream.whole()
            #expect(monitor.requestsInFlight == 1)
        }
        do { _ = try await monitored.open(TransportRequest(url: "http://example.com/y")) }
        #expect(monitor.requestsInFlight == 1, "a released response has ended")
        gate.open()
        _ = try await sending.value
        #expect(monitor.requestsInFlight == 0)
        #expect(telemetry.totals.all.bytesSent == 3)
    }

    @Test func `requests have an ID if one is made, and exchanges the SDK's reason`() async throws {
        let seen = Mutex<[MonitoredTransport.Exchange]>([])
        let base = SlowTransport(clock: clock, latency: .zero, pieces: [(1, .zero)])
        let transport = MonitoredTransport(
            base,
            monitor: nil,
            clock: clock,
            makeRequestID: { "id" },
            onExchange: { exchange in seen.withLock { $0.append(exchange) } }
        )
        _ = try await RequestReason("feed", cause: "missing", policy: "cacheFirst").around {
            () async throws(TransportError) in try await transport.send(request)
        }
        var own = request
        own.fields.set("X-Request-ID", "own")
        _ = try await transport.send(own)
        #expect(seen.withLock { $0 }.map { $0.request.fields["X-Request-ID"] } == ["id", "own"])
        #expect(seen.withLock { $0 }.map(\.reason) == ["feed: missing, policy cacheFirst", nil])
        _ = try await self.transport(base).send(request)
    }
}

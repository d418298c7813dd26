import LarderHTTP
public import LarderTime
import Synchronization

/// A transport that tells a `NetworkMonitor` and a `Telemetry` what its exchanges experience.
///
/// It changes nothing about them, unless it is told to refuse those that cannot succeed. Safe from any task.
public struct MonitoredTransport: Transport {
    private let base: any Transport
    private let monitor: NetworkMonitor?
    private let telemetry: Telemetry
    private let clock: any MonotonicClock
    private let refusesOffline: Bool
    private let waitsByDesign: @Sendable (TransportRequest) -> Bool
    private let feature: @Sendable (TransportRequest) -> String

    /// - Parameters:
    ///   - base: what sends.
    ///   - monitor: what learns from it.
    ///   - refusesOffline: whether requests fail at once, as unreachable, while `monitor.admits()` says no.
    ///   - clock: what is measured by.
    ///   - waitsByDesign: tells requests whose reply takes its time because nothing happens, as of a long poll or a stream of events:
    ///     their times say nothing of the network, and only whether they succeed counts.
    ///   - feature: names what a request is for, one of few names.
    public init(
        _ base: any Transport,
        monitor: NetworkMonitor?,
        telemetry: Telemetry = .off,
        refusesOffline: Bool = false,
        clock: any MonotonicClock = SystemMonotonicClock(),
        waitsByDesign: @escaping @Sendable (TransportRequest) -> Bool = { _ in false },
        feature: @escaping @Sendable (TransportRequest) -> String = { _ in "http" }
    ) {
        self.base = base
        self.monitor = monitor
        self.telemetry = telemetry
        self.refusesOffline = refusesOffline
        self.waitsByDesign = waitsByDesign
        self.clock = clock
        self.feature = feature
    }

    /// Sends a request.
    public func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try admit()
        let start = clock.uptime
        do {
            let response = try await base.send(request)
            let time = clock.uptime - start
            let bytes = response.body.count
            // Head and content came as one: a large content makes this time one of transfer, a small one one of latency.
            let isLarge = bytes >= NetworkQualityEstimator.Thresholds().transferMinimum
            let sample =
                waitsByDesign(request)
                ? NetworkSample(.reply, bytes: bytes)
                : NetworkSample(.reply, latency: isLarge ? nil : time, bytes: bytes, transfer: isLarge ? time : nil)
            monitor?.note(sample)
            tell(request, status: response.status.code, nil, time, bytes)
            return response
        } catch {
            failed(request, error, status: nil, since: start, bytes: 0)
            throw error
        }
    }

    /// Sends a request and gives back the reply as soon as its head is there. The exchange counts when its content has ended.
    public func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try admit()
        let start = clock.uptime
        let stream: TransportStream
        do {
            stream = try await base.open(request)
        } catch {
            failed(request, error, status: nil, since: start, bytes: 0)
            throw error
        }
        let latency = clock.uptime - start
        let status = stream.status.code
        let body = MonitoredBody(stream.body) { outcome in
            if let error = outcome.error, NetworkSample(error) != nil {
                self.failed(request, error, status: status, since: start, bytes: outcome.bytes)
            } else {
                // Also where the reader gave up: the network did its part until then.
                let transfer = outcome.error == nil ? outcome.waited : nil
                let sample =
                    self.waitsByDesign(request)
                    ? NetworkSample(.reply, bytes: outcome.bytes)
                    : NetworkSample(.reply, latency: latency, bytes: outcome.bytes, transfer: transfer)
                self.monitor?.note(sample)
                let failure = outcome.error?.code.rawValue
                self.tell(request, status: status, failure, self.clock.uptime - start, outcome.bytes)
            }
        }
        return TransportStream(
            status: stream.status,
            fields: stream.fields,
            body: TransportBody { () async throws(TransportError) in try await body.next(clock: clock) },
            redirectedTo: stream.redirectedTo
        )
    }

    private func admit() throws(TransportError) {
        guard refusesOffline, let monitor, !monitor.admits() else { return }
        throw TransportError(.unreachable, "There is no network. Nothing was sent; try again when it is back.")
    }

    private func failed(
        _ request: TransportRequest,
        _ error: TransportError,
        status: Int?,
        since start: MonotonicTime,
        bytes: Int
    ) {
        if let sample = NetworkSample(error) { monitor?.note(sample) }
        tell(request, status: status, error.code.rawValue, clock.uptime - start, bytes)
    }

    private func tell(_ request: TransportRequest, status: Int?, _ failure: String?, _ time: Duration, _ bytes: Int) {
        telemetry.record(
            .request(
                feature: feature(request),
                status: status,
                failure: failure,
                duration: time,
                bytesReceived: bytes,
                bytesSent: request.body.count
            )
        )
    }
}

/// Content that is measured while it is read. Read by one task, as `TransportBody` says.
private final class MonitoredBody: Sendable {
    struct Outcome: Sendable {
        var bytes = 0
        /// How long the reader waited for pieces; what it did between them is not the network's fault.
        var waited: Duration = .zero
        var error: TransportError?
    }

    private struct State {
        var outcome = Outcome()
        var isTold = false
    }

    private let body: TransportBody
    private let state = Mutex(State())
    private let onEnd: @Sendable (Outcome) -> Void

    init(_ body: TransportBody, onEnd: @escaping @Sendable (Outcome) -> Void) {
        self.body = body
        self.onEnd = onEnd
    }

    deinit {
        note(waited: .zero, bytes: 0, isEnd: true, TransportError(.cancelled, "Nobody read the content to its end."))
    }

    func next(clock: any MonotonicClock) async throws(TransportError) -> [UInt8]? {
        // A content is read once: a new iterator reads on where the other stopped.
        var iterator = body.makeAsyncIterator()
        let start = clock.uptime
        do {
            let piece = try await iterator.next()
            note(waited: clock.uptime - start, bytes: piece?.count ?? 0, isEnd: piece == nil, nil)
            return piece
        } catch {
            note(waited: clock.uptime - start, bytes: 0, isEnd: true, error)
            throw error
        }
    }

    private func note(waited: Duration, bytes: Int, isEnd: Bool, _ error: TransportError?) {
        let outcome = state.withLock { state -> Outcome? in
            state.outcome.waited += waited
            state.outcome.bytes += bytes
            guard isEnd, !state.isTold else { return nil }
            state.isTold = true
            state.outcome.error = error
            return state.outcome
        }
        if let outcome { onEnd(outcome) }
    }
}

import LarderEvents
import LarderHTTP
package import LarderTime
package import LarderTransport
import Synchronization

/// A transport that reports the duration and outcome of each exchange to a `NetworkMonitor` and to `onExchange`.
///
/// Exchanges are passed through unchanged; on request, those that cannot succeed are rejected. Safe from any task.
package struct MonitoredTransport: Transport {
    /// A completed exchange.
    package struct Exchange: Sendable {
        package let request: TransportRequest
        /// The status of the response; nil if there was none.
        package let status: Int?
        /// The code of the `TransportError`; nil on success.
        package let failure: String?
        /// The time from sending to the end of the content.
        package let duration: Duration
        /// The number of content bytes that were received, before they were decoded.
        package let bytesReceived: Int
        /// The number of content bytes after decoding; nil: the content had no coding that the transport decodes.
        package let bytesDecoded: Int?
        /// Why the SDK has sent the request, in words; nil for a request of the app's own.
        package let reason: String?
    }

    private let base: any Transport
    private let monitor: NetworkMonitor?
    private let onExchange: @Sendable (Exchange) -> Void
    private let clock: any MonotonicClock
    private let rejectsOffline: Bool
    private let makeRequestID: (@Sendable () -> String)?

    /// - Parameters:
    ///   - base: sends the requests.
    ///   - monitor: gets the measurements.
    ///   - rejectsOffline: whether requests fail at once as unreachable while `monitor.admits()` is false.
    ///   - clock: used for durations.
    ///   - makeRequestID: makes the `X-Request-ID` of each request that has none, with which the server's log is joined to `Exchange`;
    ///     nil: requests have no such field.
    ///   - onExchange: called after each exchange, on the task that made it or read its content.
    package init(
        _ base: any Transport,
        monitor: NetworkMonitor?,
        rejectsOffline: Bool = false,
        clock: any MonotonicClock = SystemMonotonicClock(),
        makeRequestID: (@Sendable () -> String)? = nil,
        onExchange: @escaping @Sendable (Exchange) -> Void = { _ in }
    ) {
        self.base = base
        self.monitor = monitor
        self.onExchange = onExchange
        self.rejectsOffline = rejectsOffline
        self.makeRequestID = makeRequestID
        self.clock = clock
    }

    /// Sends a request and reports the exchange.
    package func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        try admit()
        let request = identified(request)
        let reason = RequestReason.current?.description
        let start = clock.uptime
        monitor?.inFlight.wrappingAdd(1, ordering: .relaxed)
        defer { monitor?.inFlight.wrappingSubtract(1, ordering: .relaxed) }
        do {
            let response = try await base.send(request)
            let time = clock.uptime - start
            let bytes = response.codedBytes ?? response.body.count
            // Head and content arrive together here: with a large content this is transfer time, with a small one latency.
            if let monitor {
                let isLarge = bytes >= NetworkMonitor.Thresholds.transferMinimum
                let sample =
                    request.isLongPoll
                    ? NetworkSample(.reply, bytes: bytes)
                    : NetworkSample(.reply, latency: isLarge ? nil : time, bytes: bytes, transfer: isLarge ? time : nil)
                monitor.note(sample)
            }
            let decoded = response.codedBytes.map { _ in response.body.count }
            tell(request, reason, status: response.status.code, nil, time, bytes, decoded)
            return response
        } catch {
            failed(request, reason, error, status: nil, since: start, bytes: 0)
            throw error
        }
    }

    /// Returns as soon as the response head has arrived. The exchange is reported at the end of its content.
    package func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try admit()
        let request = identified(request)
        let reason = RequestReason.current?.description
        let start = clock.uptime
        let stream: TransportStream
        monitor?.inFlight.wrappingAdd(1, ordering: .relaxed)
        do {
            stream = try await base.open(request)
        } catch {
            monitor?.inFlight.wrappingSubtract(1, ordering: .relaxed)
            failed(request, reason, error, status: nil, since: start, bytes: 0)
            throw error
        }
        let latency = clock.uptime - start
        let status = stream.status.code
        let body = MonitoredBody(stream.body) { read in
            self.monitor?.inFlight.wrappingSubtract(1, ordering: .relaxed)
            var outcome = read
            if let coded = stream.codedBytes { outcome.bytes = coded.value }
            let decoded = stream.codedBytes.map { _ in read.bytes }
            if let error = outcome.error, NetworkSample(error) != nil {
                self.failed(request, reason, error, status: status, since: start, bytes: outcome.bytes, decoded)
            } else {
                // Also if the reader stopped: until then the network worked.
                let transfer = outcome.error == nil ? outcome.waited : nil
                let sample =
                    request.isLongPoll
                    ? NetworkSample(.reply, bytes: outcome.bytes)
                    : NetworkSample(.reply, latency: latency, bytes: outcome.bytes, transfer: transfer)
                self.monitor?.note(sample)
                let failure = outcome.error?.code.rawValue
                self.tell(request, reason, status: status, failure, self.clock.uptime - start, outcome.bytes, decoded)
            }
        }
        var monitored = TransportStream(
            status: stream.status,
            fields: stream.fields,
            body: TransportStream.Body { () async throws(TransportError) in try await body.next(clock: clock) },
            redirectedTo: stream.redirectedTo
        )
        monitored.codedBytes = stream.codedBytes
        return monitored
    }

    private func admit() throws(TransportError) {
        guard rejectsOffline, let monitor, !monitor.admits() else { return }
        throw TransportError(.unreachable, "There is no network. Nothing was sent; try again when it is back.")
    }

    private func identified(_ request: TransportRequest) -> TransportRequest {
        guard let makeRequestID, !request.fields.contains(.requestID) else { return request }
        var request = request
        request.fields.set(.requestID, makeRequestID())
        return request
    }

    private func failed(
        _ request: TransportRequest,
        _ reason: String?,
        _ error: TransportError,
        status: Int?,
        since start: MonotonicTime,
        bytes: Int,
        _ decoded: Int? = nil
    ) {
        if let sample = NetworkSample(error) { monitor?.note(sample) }
        tell(request, reason, status: status, error.code.rawValue, clock.uptime - start, bytes, decoded)
    }

    private func tell(
        _ request: TransportRequest,
        _ reason: String?,
        status: Int?,
        _ failure: String?,
        _ time: Duration,
        _ bytes: Int,
        _ decoded: Int?
    ) {
        monitor?.spent(bytes)
        onExchange(
            Exchange(
                request: request,
                status: status,
                failure: failure,
                duration: time,
                bytesReceived: bytes,
                bytesDecoded: decoded,
                reason: reason
            )
        )
    }
}

/// Measures content while it is read. Read by one task, as `TransportStream.Body` requires.
private final class MonitoredBody: Sendable {
    struct Outcome: Sendable {
        var bytes = 0
        /// The time that the reader waited for pieces, without its own work between them.
        var waited: Duration = .zero
        var error: TransportError?
    }

    private struct State {
        var outcome = Outcome()
        var isTold = false
    }

    private let body: TransportStream.Body
    private let state = Mutex(State())
    private let onEnd: @Sendable (Outcome) -> Void

    init(_ body: TransportStream.Body, onEnd: @escaping @Sendable (Outcome) -> Void) {
        self.body = body
        self.onEnd = onEnd
    }

    deinit {
        note(waited: .zero, bytes: 0, isEnd: true, TransportError(.cancelled, "The content was not read to its end."))
    }

    func next(clock: any MonotonicClock) async throws(TransportError) -> [UInt8]? {
        let start = clock.uptime
        do {
            let piece = try await body.next()
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

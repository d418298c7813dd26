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
    private let onBegin: (@Sendable (TransportRequest) -> @Sendable (Exchange) -> Void)?
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
    ///   - onBegin: called before each exchange; what it returns is called after it.
    ///   - onExchange: called after each exchange, on the task that made it or read its content.
    package init(
        _ base: any Transport,
        monitor: NetworkMonitor?,
        rejectsOffline: Bool = false,
        clock: any MonotonicClock = SystemMonotonicClock(),
        makeRequestID: (@Sendable () -> String)? = nil,
        onBegin: (@Sendable (TransportRequest) -> @Sendable (Exchange) -> Void)? = nil,
        onExchange: @escaping @Sendable (Exchange) -> Void = { _ in }
    ) {
        self.base = base
        self.monitor = monitor
        self.onBegin = onBegin
        self.onExchange = onExchange
        self.rejectsOffline = rejectsOffline
        self.makeRequestID = makeRequestID
        self.clock = clock
    }

    /// Returns as soon as the response head has arrived. The exchange is reported at the end of its content.
    package func open(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
        try admit()
        let request = identified(request)
        let reason = RequestReason.current?.description
        let start = clock.uptime
        let onEnd = onBegin?(request)
        monitor?.inFlight.wrappingAdd(1, ordering: .relaxed)
        let end = {
            @Sendable (status: Int?, error: TransportError?, bytes: Int, decoded: Int?, sample: NetworkSample?) in
            monitor?.inFlight.wrappingSubtract(1, ordering: .relaxed)
            if let sample { monitor?.note(sample) }
            monitor?.spent(bytes)
            let exchange = Exchange(
                request: request,
                status: status,
                failure: error?.code.rawValue,
                duration: clock.uptime - start,
                bytesReceived: bytes,
                bytesDecoded: decoded,
                reason: reason
            )
            onEnd?(exchange)
            onExchange(exchange)
        }
        var stream: TransportStream
        do { stream = try await base.open(request) } catch {
            end(nil, error, 0, nil, NetworkSample(error))
            throw error
        }
        let latency = clock.uptime - start
        let (status, coded) = (Int(stream.status.code), stream.codedBytes)
        let body = MonitoredBody(stream.body) { read in
            let bytes = coded?.value ?? read.bytes
            var sample = NetworkSample(.reply, bytes: bytes)
            if !request.isLongPoll {
                // Also if the reader stopped: until then the network worked.
                sample.latency = latency
                sample.transfer = read.error == nil ? read.waited : nil
            }
            let failure = read.error.flatMap { NetworkSample($0) }
            end(status, read.error, bytes, coded.map { _ in read.bytes }, failure ?? sample)
        }
        stream.body = TransportStream.Body { () async throws(TransportError) in try await body.next(clock: clock) }
        return stream
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
        var isRead = false
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
        // Content that nobody has asked for, such as that of a redirect, has ended with the head.
        let isLeft = state.withLock { $0.isRead }
        let error = isLeft ? TransportError(.cancelled, "The content was not read to its end.") : nil
        note(waited: .zero, bytes: 0, isEnd: true, error)
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
            state.isRead = true
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

import Larder
import Synchronization

/// The requests of a run with the SDK's reasons, for `--explain`. Safe from any thread.
final class RequestLog: Sendable {
    private struct State {
        var exchanges: [MonitoredTransport.Exchange] = []
        var count = 0
    }

    /// The requests that are kept: the first ones of a run.
    static let exchangesMaximum = 1_000

    private let run = String(UInt32.random(in: 0 ... .max), radix: 16)
    private let state = Mutex(State())

    /// The requests in the order of their replies, and how many more there were.
    var exchanges: (kept: [MonitoredTransport.Exchange], dropped: Int) {
        state.withLock { ($0.exchanges, $0.count - $0.exchanges.count) }
    }

    /// Makes the ID of the next request.
    func makeID() -> String { "larder-\(run)-\(UInt32.random(in: 0 ... .max))" }

    func note(_ exchange: MonitoredTransport.Exchange) {
        state.withLock { state in
            state.count += 1
            if state.exchanges.count < Self.exchangesMaximum { state.exchanges.append(exchange) }
        }
    }
}

extension MonitoredTransport.Exchange {
    /// What the server's journal has as `requestID`.
    var id: String { request.fields["X-Request-ID"] ?? "" }

    /// The path and the query.
    var target: String { HTTPURL(request.url)?.target ?? "/" }
}

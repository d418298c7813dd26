import Larder
import Synchronization

/// The requests of a run with the SDK's reasons, for `--explain`. Safe from any thread.
final class RequestLog: Sendable {
    /// A request and its reply.
    struct Exchange: Sendable {
        var id: String
        var method: String
        /// The path and the query.
        var target: String
        var reason: String?
        var status: Int?
        var failure: String?
        var duration: Duration
        var bytes: Int
    }

    private struct State {
        var exchanges: [Exchange] = []
        var count = 0
    }

    /// The requests that are kept: the first ones of a run.
    static let exchangesMaximum = 1_000

    private let run = String(UInt32.random(in: 0 ... .max), radix: 16)
    private let state = Mutex(State())

    /// The requests in the order of their replies, and how many more there were.
    var exchanges: (kept: [Exchange], dropped: Int) {
        state.withLock { ($0.exchanges, $0.count - $0.exchanges.count) }
    }

    /// Makes the ID of the next request.
    func makeID() -> String { "larder-\(run)-\(UInt32.random(in: 0 ... .max))" }

    func note(_ exchange: MonitoredTransport.Exchange) {
        let url = exchange.request.url
        let path = url.firstRange(of: "://").flatMap { scheme in
            url[scheme.upperBound...].firstIndex(of: "/").map { String(url[$0...]) }
        }
        let kept = Exchange(
            id: exchange.request.fields["X-Request-ID"] ?? "",
            method: exchange.request.method.rawValue,
            target: path ?? "/",
            reason: exchange.reason,
            status: exchange.status,
            failure: exchange.failure,
            duration: exchange.duration,
            bytes: exchange.bytesReceived
        )
        state.withLock { state in
            state.count += 1
            if state.exchanges.count < Self.exchangesMaximum { state.exchanges.append(kept) }
        }
    }
}

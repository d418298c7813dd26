package import LarderTransport

/// The measurement of one exchange.
package struct NetworkSample: Sendable, Hashable {
    /// The result of an exchange.
    package enum Outcome: Sendable, Hashable {
        /// A response arrived, with any status.
        case reply
        /// The server could not be reached.
        case unreachable
        /// The connection broke or timed out.
        case broken
    }

    /// The result.
    package var outcome: Outcome
    /// The time from the request to the response head; nil if unknown.
    package var latency: Duration?
    /// The number of content bytes received.
    package var bytes: Int
    /// The duration of their transfer; nil if unknown.
    package var transfer: Duration?

    package init(_ outcome: Outcome, latency: Duration? = nil, bytes: Int = 0, transfer: Duration? = nil) {
        self.outcome = outcome
        self.latency = latency
        self.bytes = bytes
        self.transfer = transfer
    }

    /// The sample of a failure; nil if it says nothing about the network, such as a cancellation.
    package init?(_ error: TransportError) {
        switch error.code {
        case .unreachable: self.init(.unreachable)
        case .interrupted, .timedOut: self.init(.broken)
        default: return nil
        }
    }
}

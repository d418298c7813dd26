/// What one exchange tells of the network.
public struct NetworkSample: Sendable, Hashable {
    /// How the exchange ended.
    public enum Outcome: Sendable, Hashable {
        /// A reply came, whatever its status: the network did its part.
        case reply
        /// The server could not be reached.
        case unreachable
        /// The connection broke, or the reply did not come in time.
        case broken
    }

    /// How the exchange ended.
    public var outcome: Outcome
    /// How long it took from the request to the reply's head; nil where that is not known.
    public var latency: Duration?
    /// The bytes of content that came.
    public var bytes: Int
    /// How long these took; nil where that is not known.
    public var transfer: Duration?

    /// What one exchange tells.
    public init(_ outcome: Outcome, latency: Duration? = nil, bytes: Int = 0, transfer: Duration? = nil) {
        self.outcome = outcome
        self.latency = latency
        self.bytes = bytes
        self.transfer = transfer
    }

    /// What a failure tells; nil where it says nothing of the network, as when the caller gave up.
    public init?(_ error: TransportError) {
        switch error.code {
        case .unreachable: self.init(.unreachable)
        case .interrupted, .timedOut: self.init(.broken)
        default: return nil
        }
    }
}

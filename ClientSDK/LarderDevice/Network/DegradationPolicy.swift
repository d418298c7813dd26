public import LarderEvents

/// The behavior of the SDK at each level of the network: a value that can be replaced in whole or in part.
///
/// ```swift
/// var policy = DegradationPolicy.standard
/// policy.constrained.renditionFactor = 0.25
/// policy.constrained.lifetimeFactors["critical"] = 1
/// ```
public struct DegradationPolicy: Sendable, Hashable {
    /// The behavior on a good network.
    public var good: NetworkBehavior
    /// The behavior on a slow, lossy or metered network.
    public var constrained: NetworkBehavior
    /// The behavior without a network.
    public var offline: NetworkBehavior
    /// The time over which clients that lost the network together are spread when it returns, so that n clients return at a rate of
    /// n / window. Requests made by a person do not wait. For 10,000 clients and a server that takes 100 requests a second: 100 s or more.
    public var resumeWindow: Duration

    /// Creates a degradation policy.
    public init(
        good: NetworkBehavior,
        constrained: NetworkBehavior,
        offline: NetworkBehavior,
        resumeWindow: Duration = .seconds(30)
    ) {
        self.good = good
        self.constrained = constrained
        self.offline = offline
        self.resumeWindow = resumeWindow
    }

    /// The behavior at a level.
    public subscript(level: NetworkLevel) -> NetworkBehavior {
        switch level {
        case .offline: offline
        case .constrained: constrained
        case .good: good
        }
    }

    /// Offline: no automatic requests. Constrained: fewer requests, larger batches, and longer lifetimes for everything that is not
    /// critical.
    public static let standard = DegradationPolicy(
        good: NetworkBehavior(),
        constrained: NetworkBehavior(
            allowsPrefetch: false,
            renditionFactor: 0.5,
            concurrencyFactor: 0.5,
            batchFactor: 2,
            batchDelay: .seconds(2),
            lifetimeFactors: ["interactive": 2, "reference": 4]
        ),
        offline: NetworkBehavior(
            allowsRefresh: false,
            allowsPaging: false,
            allowsPrefetch: false,
            allowsUserRefresh: false,
            sendsOutbox: false,
            concurrencyFactor: 0.5
        )
    )

    /// The level of the network changes nothing, and clients return at once.
    public static let none = DegradationPolicy(
        good: NetworkBehavior(),
        constrained: NetworkBehavior(),
        offline: NetworkBehavior(),
        resumeWindow: .zero
    )
}

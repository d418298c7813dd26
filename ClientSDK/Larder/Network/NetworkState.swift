/// What the network is good for, and why that is so.
public struct NetworkState: Sendable, Hashable {
    /// What the network is good for.
    public var level: NetworkLevel
    /// What decided it.
    public var cause: Cause
    /// What the system says.
    public var status: NetworkStatus
    /// What requests say.
    public var quality: NetworkQualityEstimator.Quality

    /// What decided a level.
    public enum Cause: String, Sendable, Hashable {
        /// It was set by hand.
        case override
        /// The system says that there is no network.
        case noInterface
        /// The system says that traffic is to be spared.
        case metered
        /// What requests have experienced.
        case experience
        /// Nothing speaks against it.
        case nothing
    }
}

package import LarderEvents

extension NetworkMonitor {
    /// The level of the network and its cause.
    package struct State: Sendable, Hashable {
        package var level: NetworkLevel
        /// The cause of the level.
        package var cause: Cause
        /// The state reported by the system.
        package var status: NetworkStatus
        /// The averages measured by requests.
        package var quality: Quality

        /// The cause of a level.
        package enum Cause: String, Sendable, Hashable {
            /// Set with `setOverride`.
            case override
            /// The system reports no network.
            case noInterface
            /// The system reports a metered network.
            case metered
            /// Measurements of requests.
            case experience
            /// No reason against a good network.
            case nothing
        }
    }
}

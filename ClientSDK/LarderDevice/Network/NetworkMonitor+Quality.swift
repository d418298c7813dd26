extension NetworkMonitor {
    /// The thresholds between levels, for a phone.
    enum Thresholds {
        /// The mean latency from which the network is constrained.
        static let slowLatency: Duration = .milliseconds(1_500)
        /// The mean latency below which it may be good again.
        static let goodLatency: Duration = .milliseconds(800)
        /// The throughput in bytes per second below which the network is constrained.
        static let slowThroughput: Double = 40_000
        /// The throughput above which it may be good again.
        static let goodThroughput: Double = 100_000
        /// The share of failed exchanges from which the network is constrained.
        static let badFailureShare: Double = 0.3
        /// The share below which it may be good again.
        static let goodFailureShare: Double = 0.1
        /// The number of exchanges, weighted by age, that are needed for a decision.
        static let samplesMinimum: Double = 2.5
        /// The number of consecutive unreachable results after which the network counts as offline.
        static let unreachableInRow = 3
        /// The time after which a measurement counts half.
        static let halfLife: Duration = .seconds(20)
        /// The time for which all measurements must be good before the level rises.
        static let recoveryTime: Duration = .seconds(10)
        /// Transfers of fewer bytes are not used to measure throughput.
        static let transferMinimum = 16_384
        /// While offline because of measurements: the longest delay after the last failure until one request may try again; doubled
        /// each time. Up to a quarter of it is left out at random.
        static let probeInterval: Duration = .seconds(2)
        /// The maximum of this delay.
        static let probeIntervalMaximum: Duration = .seconds(60)
    }

    /// The current averages, for display.
    package struct Quality: Sendable, Hashable {
        /// The mean time until the response head; nil while unknown.
        package var latency: Duration?
        /// The mean throughput in bytes per second; nil while unknown.
        package var bytesPerSecond: Double?
        /// The share of exchanges that failed, from 0 to 1; nil while unknown.
        package var failureShare: Double?
    }
}

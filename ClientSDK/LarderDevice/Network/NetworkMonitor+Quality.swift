extension NetworkMonitor {
    /// The thresholds between levels.
    public struct Thresholds: Sendable, Hashable {
        /// The mean latency from which the network is constrained.
        public var slowLatency: Duration = .milliseconds(1_500)
        /// The mean latency below which it may be good again.
        public var goodLatency: Duration = .milliseconds(800)
        /// The throughput in bytes per second below which the network is constrained.
        public var slowThroughput: Double = 40_000
        /// The throughput above which it may be good again.
        public var goodThroughput: Double = 100_000
        /// The share of failed exchanges from which the network is constrained.
        public var badFailureShare: Double = 0.3
        /// The share below which it may be good again.
        public var goodFailureShare: Double = 0.1
        /// The number of exchanges, weighted by age, that are needed for a decision.
        public var samplesMinimum: Double = 2.5
        /// The number of consecutive unreachable results after which the network counts as offline.
        public var unreachableInRow = 3
        /// The time after which a measurement counts half.
        public var halfLife: Duration = .seconds(20)
        /// The time for which all measurements must be good before the level rises.
        public var recoveryTime: Duration = .seconds(10)
        /// Transfers of fewer bytes are not used to measure throughput.
        public var transferMinimum = 16_384
        /// While offline because of measurements: the longest delay after the last failure until one request may try again; doubled
        /// each time. Up to a quarter of it is left out at random.
        public var probeInterval: Duration = .seconds(2)
        /// The maximum of this delay.
        public var probeIntervalMaximum: Duration = .seconds(60)

        /// Thresholds for a phone.
        public init() {}
    }

    /// The current averages, for display.
    public struct Quality: Sendable, Hashable {
        /// The mean time until the response head; nil while unknown.
        public var latency: Duration?
        /// The mean throughput in bytes per second; nil while unknown.
        public var bytesPerSecond: Double?
        /// The share of exchanges that failed, from 0 to 1; nil while unknown.
        public var failureShare: Double?
    }
}

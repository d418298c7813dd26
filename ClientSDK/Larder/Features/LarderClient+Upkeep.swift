extension LarderClient {
    /// What looks after a client while it runs: whoever watches the network and memory, counts, and holds the switches.
    ///
    /// By default all of it is the client's own: made with it, and ended by `close`, by `signOut` and with the client. Each part can
    /// be left out, or given, and what is given is used and never ended.
    ///
    ///     var configuration = LarderClient.Configuration()
    ///     configuration.upkeep.memory = .none
    ///     configuration.upkeep.degradation.constrained.renditionFactor = 0.25
    public struct Upkeep: Sendable {
        /// Where a part comes from.
        public enum Part<Value: Sendable>: Sendable {
            /// The client's own.
            case own
            /// One that others use too, or that a test drives.
            case given(Value)
            /// There is none.
            case none
        }

        /// Who knows what the network is good for.
        public var network = Part<NetworkMonitor>.own
        /// Who notices that memory is short.
        public var memory = Part<MemoryGuard>.own
        /// Who counts what happens.
        public var telemetry = Part<Telemetry>.own
        /// Who holds the switches.
        public var flags = Part<FeatureFlags>.own

        /// What is done by itself at each level of the network. A given monitor has its own, and it is set to this one.
        public var degradation = DegradationPolicy.standard
        /// What is done when memory is short, by the client's own guard.
        public var memoryPolicy = MemoryPolicy.standard
        /// What tells the client's own monitor of the network; nil: the system, whose interfaces do not count for a server on this
        /// machine.
        public var networkSource: (any NetworkStatusSource)?
        /// What tells the client's own guard of memory; nil: the system.
        public var memorySource: (any MemoryPressureSource)?
        /// Keeps the last events of the client's own telemetry on disk.
        public var recorder: FlightRecorder?
        /// Gets the server's settings for the client's own flags, at most once in `flagsLifetime`; nil: nobody is asked.
        public var fetchFlags: FeatureFlags.Fetch?
        /// For how long fetched settings are good.
        public var flagsLifetime: Duration = .seconds(3_600)
        /// Where decoding of pictures waits for idle moments; nil: it does not wait.
        public var idle: IdleScheduler?

        /// Everything is the client's own.
        public static let standard = Upkeep()

        /// There is nobody: no level changes anything, nothing is counted, and all switches are at their defaults.
        public static let none: Upkeep = {
            var upkeep = Upkeep()
            upkeep.network = .none
            upkeep.memory = .none
            upkeep.telemetry = .none
            upkeep.flags = .none
            return upkeep
        }()

        /// Everything is the client's own.
        public init() {}
    }
}

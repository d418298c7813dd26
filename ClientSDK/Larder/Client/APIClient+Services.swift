extension APIClient {
    /// The background services of a client: network monitor, memory guard, telemetry and feature flags.
    ///
    /// By default the client creates its own services and ends them at `close`, at `signOut` and when it is released. Each service can
    /// be left out, or be shared; the client never ends a shared one.
    ///
    /// ```swift
    /// var configuration = APIClient.Configuration()
    /// configuration.services.memory = .none
    /// configuration.services.degradation.constrained.renditionFactor = 0.25
    /// ```
    public struct Services: Sendable {
        /// The origin of a service.
        public enum Part<Value: Sendable>: Sendable {
            /// Created and ended by the client.
            case own
            /// Shared with other clients or driven by a test.
            case given(Value)
            /// Off.
            case none
        }

        public var network = Part<NetworkMonitor>.own
        public var memory = Part<MemoryGuard>.own
        /// Counters and events.
        public var telemetry = Part<Telemetry>.own
        public var flags = Part<FeatureFlags>.own
        /// Delays decoding of pictures that are not visible while the user interacts; see `APIClient.idle`.
        public var idle = Part<IdleScheduler>.own

        /// Nil: `LarderCache.maintain` must be called.
        package var maintenance: Maintenance? = Maintenance()

        /// The allowed background work at each network level. It replaces the policy of a given monitor.
        public var degradation = DegradationPolicy.standard
        /// The limits at each memory level, for the client's own guard.
        public var memoryPolicy = MemoryPolicy.standard
        /// Whether the network is metered, for the client's own monitor: a setting of the person who uses the app. Nil: as the source
        /// reports. `NetworkMonitor.setMetered` changes it later.
        public var isMetered: Bool?
        /// The bytes that the client may receive in a month, for the client's own monitor; when they are spent the network counts as
        /// metered. What was received is stored with the account after each exchange, and counts again at the next start. Nil: no limit.
        public var dataBudget: NetworkMonitor.DataBudget?
        /// The source of the client's own monitor; nil: the system's, whose interfaces do not count for a server on
        /// this machine.
        package var networkSource: (any NetworkMonitor.Source)?
        /// The source of the client's own guard; nil: the system's.
        package var memorySource: (any MemoryGuard.Source)?
        /// Keeps the last events of the client's own telemetry on disk, so that they can be read after the process was killed
        /// (`FlightRecorder.records(path:)`). The client's own recorder has the file `flight.recorder` in the account's directory, of
        /// 128 KiB, readable by its owner only. It is left out if another process of the account has it open, and if the cache has a
        /// given store.
        public var recorder = Part<FlightRecorder>.own
        /// Fetches the settings of the client's own flags, at most once per `flagsLifetime`; nil: flags are local.
        public var fetchFlags: (@Sendable () async throws -> [String: Bool])?
        /// How long fetched settings are fresh.
        public var flagsLifetime: Duration = .seconds(3_600)
        /// The version of the app, for the events and totals of the client's own telemetry: `3.4.1`. Their session is random for each client.
        public var appVersion = ""

        /// All services are the client's own.
        public static let standard = Services()

        /// All services are off: no level changes behaviour, nothing is counted, and all flags have their defaults.
        public static let none: Services = {
            var services = Services()
            services.network = .none
            services.memory = .none
            services.telemetry = .none
            services.recorder = .none
            services.flags = .none
            services.idle = .none
            services.maintenance = nil
            return services
        }()

        /// All services are the client's own.
        public init() {}
    }
}

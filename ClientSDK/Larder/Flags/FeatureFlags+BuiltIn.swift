import LarderDevice
import LarderTelemetry

extension FeatureFlags {
    /// The SDK's own flags: each automatic behavior can be turned off by the server or on one device.
    public enum BuiltIn {
        /// Whether the SDK reduces its work on a bad network (`DegradationPolicy`).
        public static let networkDegradation = FlagKey("larder.network.degradation", default: true)
        /// The seconds over which clients are spread when the network returns.
        public static let resumeWindow = FlagKey("larder.network.resumeWindowSeconds", default: 30.0)
        /// Whether the SDK reduces its memory use under pressure (`MemoryPolicy`).
        public static let memoryGuard = FlagKey("larder.memory.guard", default: true)
        /// Whether pictures may be prefetched.
        public static let imagePrefetch = FlagKey("larder.images.prefetch", default: true)
        /// Whether decoding of pictures that are not visible waits while the user interacts.
        public static let idleDecoding = FlagKey("larder.images.idleDecoding", default: true)
        /// Whether telemetry totals are counted.
        public static let telemetryTotals = FlagKey("larder.telemetry.totals", default: true)

        /// Whether content is stored on disk (`LarderCache.setDiskTier`). The outbox and the session are stored in any case.
        public static let diskTier = FlagKey("larder.cache.disk", default: true)
        /// Whether `APIClient.http` caches. What was stored before is removed when it is turned on again.
        public static let httpCache = FlagKey("larder.cache.http", default: true)

        /// Whether a feature's resources are cached; see `APIClient.isCached(_:)`.
        ///
        /// - Parameter feature: a name of the app: `feed`, `profiles`.
        public static func cache(of feature: String) -> FlagKey<Bool> {
            FlagKey("larder.cache.feature." + feature, default: true)
        }

        /// Applies the flags to the given parts.
        ///
        /// - Parameter policy: the behavior at each level while degradation is on.
        package static func apply(
            _ flags: FeatureFlags,
            monitor: NetworkMonitor? = nil,
            policy: DegradationPolicy = .standard,
            guard memory: MemoryGuard? = nil,
            telemetry: Telemetry? = nil
        ) {
            var policy = flags[networkDegradation] ? policy : .none
            if flags.source(of: resumeWindow) != .standard {
                let seconds = flags[resumeWindow]
                policy.resume = DegradationPolicy.ResumeSpread(
                    window: .seconds(seconds.isFinite ? min(max(seconds, 0), 86_400) : 30)
                )
            }
            if let monitor, monitor.policy != policy { monitor.policy = policy }
            memory?.setEnabled(flags[memoryGuard])
            telemetry?.setTotals(flags[telemetryTotals])
        }
    }
}

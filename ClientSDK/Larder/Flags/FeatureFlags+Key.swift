extension FeatureFlags {
    /// A switch: its name and its default value.
    ///
    /// ```swift
    /// extension FeatureFlags.Key {
    ///     static let newFeed = FeatureFlags.Key("feed.new", default: false)
    /// }
    /// ```
    public struct Key: Sendable, Hashable {
        /// The name on servers and in storage.
        public let name: String
        /// The value without an override or a setting of the server.
        public let defaultValue: Bool

        public init(_ name: String, default value: Bool) {
            self.name = name
            defaultValue = value
        }

        // MARK: The SDK's own switches

        /// Whether the SDK reduces its work on a bad network (`DegradationPolicy`).
        public static let networkDegradation = Key("larder.network.degradation", default: true)
        /// Whether the SDK reduces its memory use under pressure (`MemoryPolicy`).
        public static let memoryGuard = Key("larder.memory.guard", default: true)
        /// Whether pictures may be prefetched.
        public static let imagePrefetch = Key("larder.images.prefetch", default: true)
        /// Whether decoding of pictures that are not visible waits while the user interacts.
        public static let idleDecoding = Key("larder.images.idleDecoding", default: true)
        /// Whether telemetry totals are counted.
        public static let telemetryTotals = Key("larder.telemetry.totals", default: true)
        /// Whether content is stored on disk (`LarderCache.setDiskTier`). The outbox and the session are stored in any case.
        public static let diskTier = Key("larder.cache.disk", default: true)
        /// Whether `APIClient.http` caches. What was stored before is removed when it is turned on again.
        public static let httpCache = Key("larder.cache.http", default: true)

        /// Whether a feature's resources are cached; see `APIClient.isCached(_:)`.
        ///
        /// - Parameter feature: a name of the app: `feed`, `profiles`.
        public static func cache(of feature: String) -> Key { Key("larder.cache.feature." + feature, default: true) }
    }
}

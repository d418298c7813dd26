public import LarderHTTP

extension ImageRequest {
    /// The urgency of a request.
    public enum Priority: Int, Sendable, Hashable, Comparable, CaseIterable {
        /// Not needed yet.
        case prefetch
        /// Can wait.
        case low
        /// Needed soon.
        case normal
        /// Visible. Decoding is not delayed during interaction.
        case high
        /// Needed before all other pictures.
        case highest

        /// Orders from least to most urgent.
        public static func < (left: Priority, right: Priority) -> Bool {
            left.rawValue < right.rawValue
        }
    }
}

extension ImageRequest {
    /// Which tiers a request may read and write.
    public struct CacheOptions: OptionSet, Sendable, Hashable {
        /// The bits of the options.
        public let rawValue: Int

        /// Creates options from their bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Do not read from memory.
        public static let skipMemoryRead = CacheOptions(rawValue: 1)
        /// Do not store pixels in memory.
        public static let skipMemoryWrite = CacheOptions(rawValue: 2)
        /// Do not read from disk.
        public static let skipDiskRead = CacheOptions(rawValue: 4)
        /// Do not store the file on disk.
        public static let skipDiskWrite = CacheOptions(rawValue: 8)
        /// Send no request: throw `.notCached` instead.
        public static let onlyCached = CacheOptions(rawValue: 16)

        /// Set on background validations: a stale picture is not an answer.
        static let mustValidate = CacheOptions(rawValue: 1 << 16)
        /// Set after damage: caches on the way must ask the server too (RFC 9111 §5.2.1.4).
        static let mustReload = CacheOptions(rawValue: 1 << 17)
    }
}

/// A request for a picture: URL, size and urgency.
public struct ImageRequest: Sendable {
    /// The picture's URL.
    public var url: String
    /// Identifies the picture in the caches if its URL changes while its content does not, such as by a signature in the query; nil: the URL.
    public var identity: String?
    /// Header fields to send. Requests with different fields never share a download.
    public var fields: Fields
    /// The size in pixels at which it will be shown; nil for all pixels.
    public var target: ImageTarget?
    /// The urgency.
    public var priority: Priority
    /// Which tiers may be used.
    public var cache: CacheOptions
    /// A tiny encoded picture that came with the content; decoded as the first stage, on the thread of the request. One of more than
    /// 65,536 pixels is not shown.
    public var placeholder: [UInt8]
    /// Whether to decode previews while the file is being downloaded, if its format allows it.
    public var wantsPreviews: Bool

    /// Creates an image request.
    public init(
        url: String,
        fields: Fields = Fields(),
        target: ImageTarget? = nil,
        priority: Priority = .normal,
        cache: CacheOptions = [],
        placeholder: [UInt8] = [],
        wantsPreviews: Bool = false,
        identity: String? = nil
    ) {
        self.url = url
        self.identity = identity
        self.fields = fields
        self.target = target
        self.priority = priority
        self.cache = cache
        self.placeholder = placeholder
        self.wantsPreviews = wantsPreviews
    }
}

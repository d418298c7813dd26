public import LarderTime

/// An entity as the disk tier keeps it: the bytes of its value and what is known of them.
public struct DiskEntity: Sendable, Hashable {
    /// How much of an entity a value holds. A struct, because an application may have steps in between.
    public struct Completeness: RawRepresentable, Sendable, Hashable, Comparable {
        /// The step; more is more complete.
        public let rawValue: Int

        /// A step between `partial` and `complete`, both included.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// What a list shows of it.
        public static let partial = Completeness(rawValue: 0)
        /// All that there is.
        public static let complete = Completeness(rawValue: 100)

        /// Orders from less to more.
        public static func < (left: Completeness, right: Completeness) -> Bool { left.rawValue < right.rawValue }
    }

    /// Who said what the value is. A struct, because there may be others.
    public struct Source: RawRepresentable, Sendable, Hashable {
        /// The source's number, as it is stored.
        public let rawValue: Int

        /// A source by its number.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The reply to a request.
        public static let network = Source(rawValue: 0)
        /// A message of the live channel or of the change feed.
        public static let event = Source(rawValue: 1)
        /// The user, here.
        public static let local = Source(rawValue: 2)
    }

    /// What it is called.
    public var key: EntityKey
    /// The bytes of its value, as the caller encoded them.
    public var payload: [UInt8]
    /// The server's version, which only grows; nil where there is none, and then nothing stops an overwrite.
    public var version: Int64?
    /// The validator of the reply that it came in.
    public var entityTag: String?
    /// When the content came from its source.
    public var fetchedAt: WallTime
    /// When its source last said that it is current.
    public var validatedAt: WallTime
    /// When it stops being fresh. It may be read after that too: see `DiskStore.Configuration.staleRetention`.
    public var expiresAt: WallTime
    /// How much of the entity the payload holds.
    public var completeness: Completeness
    /// Who said it.
    public var source: Source
    /// Whether it was declared stale since it was stored or validated.
    public internal(set) var isInvalidated = false
    /// Whether the clock was found to have been set back since: its times say nothing any more.
    public internal(set) var isClockUncertain = false

    /// An entity to be stored.
    public init(
        _ key: EntityKey,
        payload: [UInt8],
        version: Int64? = nil,
        entityTag: String? = nil,
        fetchedAt: WallTime,
        validatedAt: WallTime? = nil,
        expiresAt: WallTime,
        completeness: Completeness = .complete,
        source: Source = .network
    ) {
        self.key = key
        self.payload = payload
        self.version = version
        self.entityTag = entityTag
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt ?? fetchedAt
        self.expiresAt = expiresAt
        self.completeness = completeness
        self.source = source
    }
}

/// What became of an entity that was to be stored.
public enum DiskPutOutcome: Sendable, Hashable {
    /// It is stored.
    case stored
    /// What is stored has a newer version, or a newer deletion, and stays.
    case keptNewer
    /// What is stored has the same version and holds more, and stays. Its times may be renewed with a touch.
    case keptMoreComplete
}

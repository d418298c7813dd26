package import LarderTime

/// A stored entity: the bytes of its value and its metadata.
package struct DiskEntity: Sendable, Hashable {
    /// The completeness of an entity. A struct, because an app may have steps in between.
    package struct Completeness: RawRepresentable, Sendable, Hashable, Comparable {
        /// The step; more is more complete.
        package let rawValue: Int

        /// A step between `partial` and `complete`, both included.
        package init(rawValue: Int) { self.rawValue = rawValue }

        /// The part that a list shows.
        package static let partial = Completeness(rawValue: 0)
        /// The whole entity.
        package static let complete = Completeness(rawValue: 100)

        /// Orders from less to more complete.
        package static func < (left: Completeness, right: Completeness) -> Bool { left.rawValue < right.rawValue }
    }

    /// What the source has said about the freshness of a value. The raw values are stored as bits of `items.flags`.
    package struct Terms: OptionSet, Sendable, Hashable {
        package let rawValue: Int64

        package init(rawValue: Int64) { self.rawValue = rawValue }

        /// `expiresAt` is the end of a lifetime that the source has stated.
        package static let lifetimeStated = Terms(rawValue: 8)
        /// An expired value must not be used in place of a failed validation (RFC 9111 §5.2.2.2, §5.2.2.4).
        package static let mustRevalidate = Terms(rawValue: 16)
    }

    package var key: EntityKey
    /// The encoded value.
    package var payload: [UInt8]
    /// The server's version, which only increases; nil if there is none. Any value replaces one without a version.
    package var version: Int64?
    /// The entity tag of its response.
    package var entityTag: String?
    /// When the content was received.
    package var fetchedAt: WallTime
    /// When it was last confirmed to be current.
    package var validatedAt: WallTime
    /// When it becomes stale. It can still be read: see `DiskStore.Configuration.staleRetention`.
    package var expiresAt: WallTime
    /// What the source has said about its freshness.
    package var terms: Terms
    /// The completeness of the payload.
    package var completeness: Completeness
    /// When what has brought or confirmed it began.
    package var asked = Stamp.never
    /// When it was last invalidated.
    package var invalid = Stamp.never
    /// When the commit that has stored this value began. Not read back.
    package var changed = Stamp.never
    /// Whether it was marked as stale since it was stored or validated.
    package var isInvalidated: Bool { invalid > asked }
    /// Whether the clock was set back since: its times are uncertain.
    package var isClockUncertain = false
    /// The fields to index it by, when it is stored. Not read back.
    package var fields: [DiskField] = []

    package init(
        _ key: EntityKey,
        payload: [UInt8],
        version: Int64? = nil,
        entityTag: String? = nil,
        fetchedAt: WallTime,
        validatedAt: WallTime? = nil,
        expiresAt: WallTime,
        terms: Terms = [],
        completeness: Completeness = .complete
    ) {
        self.key = key
        self.payload = payload
        self.version = version
        self.entityTag = entityTag
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt ?? fetchedAt
        self.expiresAt = expiresAt
        self.terms = terms
        self.completeness = completeness
    }
}

extension DiskStore {
    /// The result of storing an entity.
    package enum PutOutcome: Sendable, Hashable {
        case stored
        /// Not stored: the stored entity or deletion is newer.
        case keptNewer
        /// Not stored: the stored entity has the same version and is more complete. Its times may be renewed with a touch.
        case keptMoreComplete
    }
}

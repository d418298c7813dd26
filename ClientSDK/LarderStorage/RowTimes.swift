package import LarderTime

/// When an entity or a list was received, was confirmed, and becomes stale.
package struct RowTimes: Sendable, Hashable {
    /// What the source has said about the freshness of a value. The raw values are stored as bits of `items.flags` (`DiskFlags.terms`).
    package struct Terms: OptionSet, Sendable, Hashable {
        package let rawValue: Int64

        package init(rawValue: Int64) { self.rawValue = rawValue }

        /// `expiresAt` is the end of a lifetime that the source has stated.
        package static let lifetimeStated = Terms(rawValue: 8)
        /// An expired value must not be used in place of a failed validation (RFC 9111 §5.2.2.2, §5.2.2.4).
        package static let mustRevalidate = Terms(rawValue: 16)
        /// The source has stated no lifetime of a part of the content. Not in `items.flags`: only a page of a timeline has it, in its note.
        package static let hasUnstatedPart = Terms(rawValue: 32)
    }

    /// When the content was received.
    package var fetchedAt: WallTime
    /// When it was last confirmed to be current.
    package var validatedAt: WallTime
    /// When it becomes stale. It can still be read: see `DiskStore.Configuration.staleRetention`.
    package var expiresAt: WallTime
    /// What the source has said about its freshness.
    package var terms: Terms

    package init(fetchedAt: WallTime, validatedAt: WallTime? = nil, expiresAt: WallTime, terms: Terms = []) {
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt ?? fetchedAt
        self.expiresAt = expiresAt
        self.terms = terms
    }

    /// The bits of `items.flags`.
    var flags: Int64 { terms.rawValue & DiskFlags.terms }
}

public import LarderTime

/// What is known at one moment: the value, how far it can be trusted, and what the network does about it.
///
/// What there is (`value`, `freshness`) and what goes on (`activity`, `refreshError`) are apart: old content with a failed
/// refresh is content.
public struct Snapshot<Value: Sendable>: Sendable {
    /// Where the value came from this time. A struct of its own, so that sources may be added.
    public enum Source: String, Sendable, Hashable {
        /// The memory tier.
        case memory
        /// The disk tier.
        case disk
        /// The server just now, be it that it sent the value or said that it is unchanged.
        case network
        /// Several of them, or a change that is pending here.
        case merged
    }

    /// What the network does about it.
    public enum Activity: String, Sendable, Hashable {
        /// Nothing.
        case idle
        /// It is being asked.
        case fetching
    }

    /// The value; nil where there is none, or none that the policy allows to show yet.
    public var value: Value?
    /// Whether the value may be taken for current.
    public var freshness: Freshness
    /// How much of what it could hold the value holds.
    public var completeness: Completeness
    /// Where the value came from; nil without a value.
    public var source: Source?
    /// When it came, was confirmed, and expires; nil without a value.
    public var times: ValueTimes?
    /// The server's version, where it has one.
    public var version: Int64?
    /// What the source gave with it to be sent back: an ETag. Nil where there is none, or the value is not as it came.
    public var validator: String?
    /// What the network does about it.
    public var activity: Activity
    /// Why the last attempt to refresh it failed; nil after one that did not.
    public var refreshError: LarderError?
    /// How many changes made here are shown that the server has not acknowledged.
    public var pendingChanges: Int
    /// Grows with everything that happens to the value: of two snapshots the one with the larger revision is the later.
    public var revision: UInt64

    /// When the content came from the server.
    public var fetchedAt: WallTime? { times?.fetchedAt }
    /// When the server last said that it is current.
    public var validatedAt: WallTime? { times?.validatedAt }
    /// When it stops being fresh.
    public var expiresAt: WallTime? { times?.expiresAt }

    /// The same with another value in it.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Snapshot<Other> {
        Snapshot<Other>(
            value: try value.map(transform),
            freshness: freshness,
            completeness: completeness,
            source: source.flatMap { Snapshot<Other>.Source(rawValue: $0.rawValue) },
            times: times,
            version: version,
            validator: validator,
            activity: activity == .idle ? .idle : .fetching,
            refreshError: refreshError,
            pendingChanges: pendingChanges,
            revision: revision
        )
    }
}

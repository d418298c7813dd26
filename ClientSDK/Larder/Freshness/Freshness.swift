/// Whether a value may be taken for current.
public enum Freshness: Sendable, Hashable {
    /// It is, by the rule of its resource.
    case fresh
    /// It is not, or nobody can tell.
    case stale(StaleReason)
    /// There is no value, or none that the read policy allows to show yet.
    case missing

    /// Whether the value is fresh.
    public var isFresh: Bool { self == .fresh }
}

/// Why a value is not called fresh.
public enum StaleReason: String, Sendable, Hashable, CaseIterable {
    /// Its time to live is over.
    case expired
    /// Somebody said that it has changed: an event, an invalidated tag, a write.
    case invalidated
    /// The server has never confirmed it: it was made here.
    case neverValidated
    /// The clock was set back since it was confirmed, so nobody knows how old it is.
    case clockUncertain
    /// It is recent but does not hold what was asked for.
    case partial
    /// A newer version of it is known to exist, or may have been: how many are remembered is bounded.
    case olderVersion
    /// The change feed that vouches for it has not caught up for too long.
    case feedBehind
}

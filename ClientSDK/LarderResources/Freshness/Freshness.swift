/// Whether a value is current.
public enum Freshness: Sendable, Hashable {
    /// The value is fresh by the rule of its resource.
    case fresh
    /// The value is not fresh, or its age is unknown.
    case stale(Freshness.StaleReason)
    /// There is no value, or the read policy does not allow it to be shown yet.
    case missing

    /// Whether the value is fresh.
    public var isFresh: Bool { self == .fresh }
}

extension Freshness: CustomStringConvertible {
    /// Such as `fresh` or `stale (expired)`.
    public var description: String {
        switch self {
        case .fresh: "fresh"
        case .stale(let reason): "stale (\(reason.rawValue))"
        case .missing: "missing"
        }
    }
}

extension Freshness {
    /// Why a value is not fresh.
    public enum StaleReason: String, Sendable, Hashable, CaseIterable {
        /// Its lifetime has ended.
        case expired
        /// Its lifetime has ended, and the server forbids to use it in place of a failed validation (`must-revalidate`, `no-cache`).
        /// `LarderCache.value` does not return it.
        case validationRequired
        /// It was invalidated: by an event, a tag or a write.
        case invalidated
        /// The server has never confirmed it: it was created on this device.
        case neverValidated
        /// The clock was set back since it was validated, so its age is unknown.
        case clockUncertain
        /// It is recent but not complete enough for the reader.
        case partial
        /// A newer version is known to exist.
        case olderVersion
        /// The change feed that covers it has not caught up in time.
        case feedBehind
    }
}

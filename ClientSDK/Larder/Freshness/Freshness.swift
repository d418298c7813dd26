public import LarderTime

/// How fresh a value is, decided from times alone.
public struct Freshness: Sendable, Hashable {
    /// Why a value is not fresh.
    public enum StaleReason: Sendable, Hashable {
        /// Its time to live is over.
        case expired
        /// The clock shows a time before the value was fetched: how old it is cannot be known.
        case clockUncertain
    }

    /// When the content came from the server.
    public var fetchedAt: WallTime
    /// When the server last said that it is current.
    public var validatedAt: WallTime
    /// When it stops being fresh.
    public var expiresAt: WallTime

    /// The times of a value.
    public init(fetchedAt: WallTime, validatedAt: WallTime, expiresAt: WallTime) {
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt
        self.expiresAt = expiresAt
    }

    /// Why the value is stale at a time; nil while it is fresh.
    public func staleReason(at now: WallTime) -> StaleReason? {
        if now < validatedAt { return .clockUncertain }
        return now >= expiresAt ? .expired : nil
    }

    /// Whether the value is fresh at a time.
    public func isFresh(at now: WallTime) -> Bool { staleReason(at: now) == nil }
}

public import LarderTime

extension Snapshot {
    /// What to tell a person about the value.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - isOffline: whether the server is known to be unreachable. A snapshot whose last refresh failed without a connection counts as
    ///     offline anyway.
    public func notice(at now: WallTime, isOffline: Bool = false) -> Freshness.Notice {
        Freshness.Notice(
            freshness,
            validatedAt: validatedAt,
            isUncertain: times?.isUncertain ?? false,
            isFetching: isFetching,
            isOffline: isOffline || refreshError?.code == .offline,
            at: now
        )
    }
}

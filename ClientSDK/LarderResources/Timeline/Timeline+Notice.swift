public import LarderTime

extension Timeline.Snapshot {
    /// What to tell a person about the shown items. The age is that of the oldest page.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - isOffline: as for `LarderResources.Snapshot.notice`.
    public func notice(at now: WallTime, isOffline: Bool = false) -> Freshness.Notice {
        let oldest = pages.map(\.times).min { $0.validatedAt < $1.validatedAt } ?? times
        // A page whose items were never confirmed together has no age. The list has one.
        let isUnknown = oldest?.validatedAt == Freshness.Times.never && times?.validatedAt != Freshness.Times.never
        return Freshness.Notice(
            freshness,
            validatedAt: isUnknown ? times?.validatedAt : oldest?.validatedAt,
            isUncertain: isUnknown || oldest?.isUncertain ?? false,
            isFetching: isRefreshing,
            isOffline: isOffline || refreshError?.code == .offline,
            at: now
        )
    }
}

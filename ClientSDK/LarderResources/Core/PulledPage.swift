import LarderStorage

/// A page of a change feed that was asked for. What was pushed has none.
struct PulledPage: Sendable {
    /// When its request began.
    let asked: Stamp
    /// From when on its values count as confirmed.
    var moment: Moment
    /// When it arrived: the stamp of all commits that store it.
    var arrived = Stamp.never
}

extension Commit {
    /// Whether what is stored of an entity stays, because it was asked for after the page that is stored, and is not known to be older. If
    /// versions do not tell, it is invalidated: the server may have answered the later request first, and the feed does not repeat the page.
    ///
    /// - Parameters:
    ///   - place: that of what is stored.
    ///   - version: that of the page's value.
    ///   - isEqual: whether the page has the stored value.
    mutating func keeps(
        _ key: EntityKey,
        _ place: DiskStore.Place,
        over version: Int64?,
        isEqual: @autoclosure () -> Bool = false,
        _ rows: Rows
    ) throws -> Bool {
        guard let page, page.asked < place.asked, place.asked != page.arrived else { return false }
        if let version, let known = place.version { return version <= known }
        if place.isRemoval || isEqual() { return true }
        try invalidate(.entity(key), at: place.asked.successor, rows)
        return true
    }
}

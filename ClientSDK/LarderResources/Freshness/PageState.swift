import LarderStorage
import LarderTime

/// What the freshness of a page of a timeline depends on.
struct PageState: Sendable, Equatable {
    var times: Freshness.Times
    /// Whether the list or one of the items of the page is invalidated.
    var isInvalidated = false
    /// Whether one of its items is no longer stored.
    var isPartial = false

    var facts: FreshnessFacts {
        var facts = FreshnessFacts(times: times)
        facts.isInvalidated = isInvalidated
        facts.isPartial = isPartial
        return facts
    }
}

/// The place in a timeline that a page is requested for.
enum TimelinePlace: Sendable, Hashable {
    /// After the last item.
    case tail
    case gap(Int)
    /// A page that was loaded before and lacks items, by its cursor; nil: the newest page.
    case page(String?)
    /// A page that was loaded before and is fetched again to confirm it, by its cursor.
    case renewal(String)
    /// At the older end of a gap.
    case newer(Int)
    /// Around an item, by its identifier.
    case around(String)
}

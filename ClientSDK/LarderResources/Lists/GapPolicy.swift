/// What to do with the older items of a timeline when the refreshed first page does not overlap them.
public enum GapPolicy: String, Sendable, Hashable {
    /// The older items are kept behind a gap, which can be filled.
    case keepBehindGap
    /// The older items are dropped. They are loaded again when a reader pages to them.
    case reset
}

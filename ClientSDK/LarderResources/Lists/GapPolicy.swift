/// What to do with the older items of a timeline when the refreshed first page does not overlap them.
public enum GapPolicy: String, Sendable, Hashable {
    /// They stay behind a gap, which can be filled.
    case keepBehindGap
    /// They are dropped and loaded again when a reader pages to them.
    case reset
}

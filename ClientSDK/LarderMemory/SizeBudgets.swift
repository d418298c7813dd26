/// Budgets for small and for large entries of a memory tier, in the unit of their costs.
public struct SizeBudgets: Sendable, Hashable {
    /// An entry that costs more is large.
    public var threshold: Int
    /// The maximum cost of all small entries.
    public var small: Int
    /// The maximum cost of all large entries.
    public var large: Int
    /// Whether entries of one size may use what the other leaves free, and give it back when the other needs it.
    public var lends: Bool

    /// Creates two budgets; the defaults are bytes: 5 MiB for pictures up to 2 MiB, and 20 MiB for larger ones.
    public init(threshold: Int = 2 << 20, small: Int = 5 << 20, large: Int = 20 << 20, lends: Bool = false) {
        self.threshold = max(0, threshold)
        self.small = max(0, small)
        self.large = max(0, large)
        self.lends = lends
    }

    /// One budget for entries of all sizes.
    public static func one(_ cost: Int) -> SizeBudgets {
        var budgets = SizeBudgets(small: 0, large: cost)
        budgets.threshold = -1
        return budgets
    }

    /// The sum of the budgets.
    public var total: Int {
        let (sum, overflows) = small.addingReportingOverflow(large)
        return overflows ? .max : sum
    }
}

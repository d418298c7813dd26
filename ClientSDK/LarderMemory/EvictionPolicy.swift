/// The rule that selects the entry to evict from a full memory tier. A value that is stored again under its key counts as new.
public enum EvictionPolicy: String, Sendable, Hashable, CaseIterable {
    /// The entry that was used longest ago leaves first. For reads that repeat soon; a list that is read once empties the tier.
    case lru
    /// The lowest score leaves first, and scores of unused entries decay (GreedyDual-Size). Without scores it is LRU.
    case greedyDual
    /// The entry with the fewest uses leaves first, and of several the one that was used longest ago; uses are counted up to 63 and never
    /// forgotten. For a popularity that does not change: an entry that was popular once stays.
    case lfu
    /// The entry that was stored first leaves first, whether it is used or not. For values that are read in the order in which they came.
    case fifo
}

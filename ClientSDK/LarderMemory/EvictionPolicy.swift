/// The rule that selects the entry to evict from a full memory tier.
public enum EvictionPolicy: String, Sendable, Hashable, CaseIterable {
    /// Least recently used.
    case lru
    /// First in, first out.
    case fifo
    /// Least frequently used, with frequencies that decay.
    case lfu
    /// SIEVE: the oldest entry that was not used since the hand last passed it (Zhang et al., NSDI 2024).
    case sieve
    /// S3-FIFO: entries that were not used again soon after their insertion leave first (Yang et al., SOSP 2023).
    case s3fifo
    /// GreedyDual-Size: the lowest score leaves first, and scores of unused entries decay (Cao and Irani, 1997, with scores rounded
    /// to powers of two as in CAMP, Ghandeharizadeh et al., 2014). Without scores it is LRU.
    case greedyDual

    /// The best policy over all traces of the simulation in `Benchmarks/memory`.
    public static let standard = EvictionPolicy.s3fifo
}

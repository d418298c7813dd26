/// The rule that selects the entry to evict from a full memory tier.
public enum EvictionPolicy: String, Sendable, Hashable, CaseIterable {
    /// The best of LRU, S3-FIFO and W-TinyLFU for the recent reads and writes: each of them is simulated on a sample of the keys. Reads
    /// and stores count as uses.
    case adaptive
    /// The lowest score leaves first, and scores of unused entries decay (GreedyDual-Size). Without scores it is LRU.
    case greedyDual
}

/// Which entry leaves a full memory tier.
public enum EvictionPolicy: String, Sendable, Hashable, CaseIterable {
    /// The one that was used longest ago.
    case lru
    /// The one that came first.
    case fifo
    /// The one that was used least, where uses count for less as time goes by.
    case lfu
    /// The first one, in the order of arrival, that was not used since the hand last passed it (Zhang et al., NSDI 2024).
    case sieve
    /// One that came and was not used soon again, before any that was (Yang et al., SOSP 2023).
    case s3fifo
    /// The one whose score is the least, where scores of what is not used count for less and less (GreedyDual-Size, Cao and
    /// Irani, 1997, with scores rounded to powers of two as in CAMP, Ghandeharizadeh et al., 2014). Without scores it is LRU.
    case greedyDual

    /// The one that the simulation in `Benchmarks/memory` found best over all of its traces.
    public static let standard = EvictionPolicy.s3fifo
}

public import LarderMemory

extension ImagePipeline {
    /// How decoded pictures share memory.
    ///
    /// ```swift
    /// var configuration = ImagePipeline.Configuration(transport: SocketTransport())
    /// configuration.memory = .twoBudgets
    /// configuration.memory.budgets?.lends = true
    /// ```
    public struct Memory: Sendable {
        /// Budgets for small and large pictures; nil: one, `memoryBytesMaximum`.
        public var budgets: SizeBudgets?
        /// Selects the picture to evict. `greedyDual` evicts the one with the lowest effort for its size: the time of decoding, and of
        /// downloading if the file is not on disk.
        public var order: EvictionPolicy
        /// Whether pixels are compressed in memory. More pictures fit, and each use restores the pixels. Photos shrink little.
        public var isCompressed: Bool

        /// Creates settings. The defaults took the least time on traces of a feed, a gallery and chats (`Benchmarks`).
        public init(
            budgets: SizeBudgets? = nil,
            order: EvictionPolicy = .greedyDual,
            isCompressed: Bool = false
        ) {
            self.budgets = budgets
            self.order = order
            self.isCompressed = isCompressed
        }

        /// LRU with 5 MiB for pictures up to 2 MiB of pixels and 20 MiB for larger ones: neither size evicts the other.
        public static let twoBudgets = Memory(budgets: SizeBudgets(), order: .lru)
    }
}

extension ImagePipeline.Configuration {
    /// The budgets, reduced to a share.
    func budgets(share: Double) -> SizeBudgets {
        guard var budgets = memory.budgets else { return .one(ImagePipeline.scaled(memoryBytesMaximum, by: share)) }
        budgets.small = ImagePipeline.scaled(budgets.small, by: share)
        budgets.large = ImagePipeline.scaled(budgets.large, by: share)
        return budgets
    }
}

extension MemoryTier {
    /// The limits of a tier.
    public struct Limits: Sendable, Hashable {
        /// The maximum number of entries; 0 or less stores none.
        public var count: Int
        /// The maximum sum of their costs; 0 or less stores none.
        public var cost: Int

        /// Creates limits; a limit that is not given does not apply.
        public init(count: Int = .max, cost: Int = .max) {
            self.count = max(0, count)
            self.cost = max(0, cost)
        }
    }

    /// The reason why an entry was removed.
    @usableFromInline package enum Reason: String, Sendable, Hashable, CaseIterable {
        /// The limit of entries.
        case count
        /// The limit of cost.
        case cost
        /// Another value was stored under its key.
        case replaced
        /// `remove` or `removeAll`.
        case removed
        /// Memory pressure.
        case pressure
    }

    /// A removed entry and the reason.
    @usableFromInline package struct Departure: Sendable {
        package let key: Key
        package let value: Value
        package let cost: Int
        package let reason: Reason
    }

    /// Counters of a tier.
    @usableFromInline package struct Statistics: Sendable, Hashable {
        @usableFromInline package var hits = 0
        @usableFromInline package var misses = 0

        /// Creates counters of zero.
        package init() {}

        /// The share of hits among reads; 0 without reads.
        package var hitRate: Double { hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses) }
    }
}

public import LarderTime

extension MemoryTier {
    /// The limits of a tier.
    public struct Limits: Sendable, Hashable {
        /// The maximum number of entries; 0 or less stores none.
        public var count: Int
        /// The maximum sum of their costs; 0 or less stores none.
        public var cost: Int

        /// Creates limits; a limit that is not given does not apply.
        @inlinable public init(count: Int = .max, cost: Int = .max) {
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
        /// The end of its lifetime.
        case expired
        /// Another value was stored under its key.
        case replaced
        /// `remove` or `removeAll`.
        case removed
        /// Memory pressure.
        case pressure
    }

    /// A removed entry and the reason.
    @usableFromInline package struct Departure: Sendable {
        @usableFromInline package let key: Key
        @usableFromInline package let value: Value
        @usableFromInline package let cost: Int
        /// The end of its lifetime on the tier's clock; nil for none.
        @usableFromInline package let expiresAt: MonotonicTime?
        @usableFromInline package let reason: Reason

        @inlinable init(key: Key, value: Value, cost: Int, expires: Int64, reason: Reason) {
            self.key = key
            self.value = value
            self.cost = cost
            expiresAt = expires == .max ? nil : MonotonicTime(nanoseconds: expires)
            self.reason = reason
        }
    }

    /// Counters of a tier.
    @usableFromInline package struct Statistics: Sendable, Hashable {
        /// The number of hits.
        @usableFromInline package var hits = 0
        /// The number of misses.
        @usableFromInline package var misses = 0
        /// The number of stored values.
        @usableFromInline package var stores = 0
        /// The number of removed entries by reason.
        @usableFromInline package var departures: [Reason: Int] = [:]

        /// Creates counters of zero.
        @inlinable package init() {}

        /// The share of hits among reads; 0 without reads.
        package var hitRate: Double { hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses) }
    }

    /// Removed entries, to be released and reported after the lock. Most of the time there is one, which needs no array.
    @usableFromInline struct Departures: Sendable {
        @usableFromInline var first: Departure?
        @usableFromInline var others: [Departure] = []

        @inlinable init() {}

        @inlinable mutating func append(_ departure: consuming Departure) {
            if first == nil { first = consume departure } else { others.append(consume departure) }
        }

        @inlinable mutating func append(_ departures: Departures) {
            if let first = departures.first { append(first) }
            for departure in departures.others { append(departure) }
        }
    }
}

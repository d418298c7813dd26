public import LarderTime

extension MemoryTier {
    /// How much there may be.
    public struct Limits: Sendable, Hashable {
        /// How many entries; 0 or less keeps none.
        public var count: Int
        /// The sum of their costs; 0 or less keeps none.
        public var cost: Int

        /// No bound but those that are given.
        @inlinable public init(count: Int = .max, cost: Int = .max) {
            self.count = max(0, count)
            self.cost = max(0, cost)
        }
    }

    /// Why an entry left.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// There were too many.
        case count
        /// They cost too much.
        case cost
        /// Its time was over.
        case expired
        /// Another value took its place.
        case replaced
        /// Somebody asked for it.
        case removed
        /// Memory was short.
        case pressure
    }

    /// An entry that left: for whoever keeps it elsewhere (spills it to disk, compresses it) or only counts.
    public struct Departure: Sendable {
        /// The entry's key.
        public let key: Key
        /// Its value.
        public let value: Value
        /// Its cost.
        public let cost: Int
        /// Until when it might have been used, on the tier's clock; nil for as long as it stayed.
        public let expiresAt: MonotonicTime?
        /// Why it left.
        public let reason: Reason

        @inlinable init(key: Key, value: Value, cost: Int, expires: Int64, reason: Reason) {
            self.key = key
            self.value = value
            self.cost = cost
            expiresAt = expires == .max ? nil : MonotonicTime(nanoseconds: expires)
            self.reason = reason
        }
    }

    /// What has happened so far.
    public struct Statistics: Sendable, Hashable {
        /// Reads that found their value.
        public var hits = 0
        /// Reads that did not.
        public var misses = 0
        /// Values that were stored.
        public var stores = 0
        /// How many entries left, by reason.
        public var departures: [Reason: Int] = [:]

        /// Nothing yet.
        @inlinable public init() {}

        /// The share of reads that found their value; 0 when there were none.
        public var hitRate: Double { hits + misses == 0 ? 0 : Double(hits) / Double(hits + misses) }
    }

    /// Entries that have left, to be released and told of after the lock. Most of the time there is one, which needs no array.
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

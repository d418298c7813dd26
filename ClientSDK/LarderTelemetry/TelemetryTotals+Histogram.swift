import LarderTime

extension TelemetryTotals {
    /// A histogram of durations with equal relative precision from microseconds to minutes.
    ///
    /// There are 32 buckets of equal width between two powers of two, so that a percentile is at most 1/32 too high. Values are
    /// nanoseconds from 0 to 292 years; negative ones count as 0. Counting costs some nanoseconds. Only the range that occurs uses
    /// memory: 8 bytes per bucket, 256 per doubling.
    public struct Histogram: Sendable, Hashable {
        /// log2 of the buckets between two powers of two.
        private static let precision = 5

        /// The number of durations.
        public private(set) var count: UInt64 = 0
        /// Their sum; saturates at 292 years.
        public private(set) var sum: Duration = .zero
        /// The shortest duration; nil if there is none.
        public var minimum: Duration? { count == 0 ? nil : .nanoseconds(least) }
        /// The longest duration; nil if there is none.
        public var maximum: Duration? { count == 0 ? nil : .nanoseconds(greatest) }
        /// The arithmetic mean; nil if there is none.
        public var mean: Duration? {
            count == 0 ? nil : .nanoseconds(sum.nanosecondsSaturating / Int64(clamping: count))
        }

        private var least: Int64 = .max
        private var greatest: Int64 = 0
        /// The bucket of `counts[0]`: the window covers exactly what occurred, so that equal contents are equal values.
        private var first = 0
        private var counts: [UInt64] = []

        /// Creates an empty histogram.
        public init() {}

        /// Counts a duration.
        public mutating func record(_ duration: Duration) {
            let nanoseconds = max(0, duration.nanosecondsSaturating)
            add(1, at: Self.bucket(nanoseconds))
            count = Self.sum(count, 1)
            let (total, overflow) = sum.nanosecondsSaturating.addingReportingOverflow(nanoseconds)
            sum = .nanoseconds(overflow ? .max : total)
            least = min(least, nanoseconds)
            greatest = max(greatest, nanoseconds)
        }

        /// Adds the counts of another histogram.
        public mutating func merge(_ other: TelemetryTotals.Histogram) {
            for (offset, count) in other.counts.enumerated() where count > 0 { add(count, at: other.first + offset) }
            count = Self.sum(count, other.count)
            let (total, overflow) = sum.nanosecondsSaturating.addingReportingOverflow(other.sum.nanosecondsSaturating)
            sum = .nanoseconds(overflow ? .max : total)
            least = min(least, other.least)
            greatest = max(greatest, other.greatest)
        }

        /// The duration that a share of all did not exceed; nil if there is none.
        ///
        /// - Parameter share: from 0 to 1: 0.5 is the median, 0.99 the 99th percentile. The result is never too low and at most
        ///   1/32 too high.
        public func percentile(_ share: Double) -> Duration? {
            guard count > 0 else { return nil }
            let share = share.isNaN ? 1 : min(max(share, 0), 1)
            let rank = max(1, UInt64(exactly: (share * Double(count)).rounded(.up)) ?? count)
            var seen: UInt64 = 0
            for (offset, count) in counts.enumerated() {
                seen = Self.sum(seen, count)
                if seen >= rank {
                    return .nanoseconds(min(max(Self.upperBound(first + offset), least), greatest))
                }
            }
            return maximum
        }

        private mutating func add(_ times: UInt64, at bucket: Int) {
            if counts.isEmpty {
                first = bucket
                counts = [0]
            } else if bucket < first {
                counts.insert(contentsOf: repeatElement(0, count: first - bucket), at: 0)
                first = bucket
            } else if bucket >= first + counts.count {
                counts.append(contentsOf: repeatElement(0, count: bucket - first - counts.count + 1))
            }
            counts[bucket - first] = Self.sum(counts[bucket - first], times)
        }

        /// Saturates, because an overflow would make every percentile wrong.
        private static func sum(_ left: UInt64, _ right: UInt64) -> UInt64 {
            let (sum, overflow) = left.addingReportingOverflow(right)
            return overflow ? .max : sum
        }

        /// Buckets include their upper bound, so that 2^k is the last value below the next power's buckets.
        private static func bucket(_ nanoseconds: Int64) -> Int {
            let value = nanoseconds > 0 ? nanoseconds - 1 : 0
            guard value >= 1 << precision else { return Int(value) }
            let exponent = 63 - value.leadingZeroBitCount
            let shift = exponent - precision
            return ((shift + 1) << precision) + Int((value >> Int64(shift)) - (1 << precision))
        }

        private static func upperBound(_ bucket: Int) -> Int64 {
            guard bucket >= 1 << precision else { return Int64(bucket) + 1 }
            let shift = (bucket >> precision) - 1
            let mantissa = Int64((bucket & ((1 << precision) - 1)) + (1 << precision))
            let (bound, overflow) = (mantissa + 1).multipliedReportingOverflow(
                by: shift >= 62 ? .max : 1 << Int64(shift)
            )
            return overflow ? .max : bound
        }
    }
}

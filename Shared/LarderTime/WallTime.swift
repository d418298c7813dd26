/// A date and time, as in `Date` fields and timestamps.
///
/// Nanoseconds since 1970-01-01T00:00:00Z, without leap seconds; covers the years 1677 to 2262. Arithmetic saturates at the
/// ends of that range instead of trapping.
public struct WallTime: Sendable, Hashable, Comparable {
    /// Nanoseconds since the epoch; negative before it.
    public var nanosecondsSinceEpoch: Int64

    /// Creates a time from nanoseconds since the epoch.
    public init(nanosecondsSinceEpoch: Int64) { self.nanosecondsSinceEpoch = nanosecondsSinceEpoch }

    /// Creates a time from milliseconds since the epoch; saturates.
    public init(milliseconds: Int64) { nanosecondsSinceEpoch = milliseconds.saturatingMultiplied(by: 1_000_000) }

    /// Creates a time from seconds since the epoch; saturates.
    public init(seconds: Int64) { nanosecondsSinceEpoch = seconds.saturatingMultiplied(by: 1_000_000_000) }

    /// Whole milliseconds since the epoch, rounded down.
    public var milliseconds: Int64 { nanosecondsSinceEpoch.flooredDivision(by: 1_000_000) }

    /// Whole seconds since the epoch, rounded down.
    public var seconds: Int64 { nanosecondsSinceEpoch.flooredDivision(by: 1_000_000_000) }

    /// Whether the left time is earlier.
    public static func < (left: WallTime, right: WallTime) -> Bool {
        left.nanosecondsSinceEpoch < right.nanosecondsSinceEpoch
    }

    /// The time `duration` later; saturates.
    public static func + (time: WallTime, duration: Duration) -> WallTime {
        WallTime(nanosecondsSinceEpoch: time.nanosecondsSinceEpoch.saturatingAdded(duration.nanosecondsSaturating))
    }

    /// The time `duration` earlier; saturates.
    public static func - (time: WallTime, duration: Duration) -> WallTime {
        WallTime(nanosecondsSinceEpoch: time.nanosecondsSinceEpoch.saturatingSubtracted(duration.nanosecondsSaturating))
    }

    /// The duration from the right to the left time; negative if the left one is earlier.
    public static func - (later: WallTime, earlier: WallTime) -> Duration {
        .nanoseconds(later.nanosecondsSinceEpoch.saturatingSubtracted(earlier.nanosecondsSinceEpoch))
    }
}

extension Duration {
    package var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }

    /// The duration in nanoseconds, rounded towards zero; saturates at about 292 years.
    public var nanosecondsSaturating: Int64 {
        Int64(clamping: attoseconds / 1_000_000_000)
    }
}

extension Int64 {
    func saturatingAdded(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    func saturatingSubtracted(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }

    func saturatingMultiplied(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? ((self < 0) == (other < 0) ? .max : .min) : product
    }

    func flooredDivision(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}

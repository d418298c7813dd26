import LarderTime

/// The place of a request, an event or a local change in the order of all that changes a store.
///
/// It is taken when the request, the event or the change begins. A value has the stamp of what has brought or confirmed it (`asked`) and of
/// its latest invalidation (`invalid`). A change is overtaken if its stamp is less than `asked` of what is stored; a value is stale if
/// `invalid` is greater than its `asked`. The order holds between processes and across restarts.
///
/// The upper 15 bits are the boot number of the store, and the lower 48 are the time since the boot in microseconds, counted up within a
/// process.
package struct Stamp: RawRepresentable, Hashable, Comparable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }

    /// The bits of the time since the boot.
    private static let timeBits: Int64 = 48

    /// The largest boot number.
    package static let bootMaximum: Int64 = 0x7FFF

    /// A stamp of a boot.
    ///
    /// - Parameters:
    ///   - boot: at most `bootMaximum`.
    ///   - time: microseconds since the boot.
    package init(boot: Int64, time: Int64) { rawValue = boot << Self.timeBits | time & ((1 << Self.timeBits) - 1) }

    /// The stamp of what was never confirmed or never invalidated: less than all others.
    package static let never = Stamp(rawValue: 0)

    package var boot: Int64 { rawValue >> Self.timeBits }

    /// The next larger stamp: for what follows a change with this stamp within one commit.
    package var successor: Stamp { Stamp(rawValue: rawValue + 1) }

    /// The stamp of what began so much earlier, in the same boot.
    package func before(_ duration: Duration) -> Stamp {
        let (time, microseconds) = (
            rawValue & ((1 << Self.timeBits) - 1), max(0, duration.nanosecondsSaturating) / 1_000
        )
        return Stamp(rawValue: rawValue - min(time, microseconds))
    }

    /// The time since an earlier stamp of the same boot, also while the machine slept.
    package func elapsed(since earlier: Stamp) -> Duration { .microseconds(rawValue - earlier.rawValue) }

    package static func < (left: Stamp, right: Stamp) -> Bool { left.rawValue < right.rawValue }
}

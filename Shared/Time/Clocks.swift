#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A point on a clock that only moves forward and says how long something took.
///
/// Nanoseconds since an origin that means nothing: only differences count. Arithmetic saturates.
public struct MonotonicTime: Sendable, Hashable, Comparable {
    /// Nanoseconds since the clock's origin.
    public var nanoseconds: Int64

    /// A point given in nanoseconds since the clock's origin.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Orders points from earlier to later.
    public static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The point that is `duration` later.
    public static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        MonotonicTime(nanoseconds: time.nanoseconds.saturatingAdded(duration.nanosecondsSaturating))
    }

    /// How much later the left point is.
    public static func - (later: MonotonicTime, earlier: MonotonicTime) -> Duration {
        .nanoseconds(later.nanoseconds.saturatingSubtracted(earlier.nanoseconds))
    }
}

/// Says what time it is. It may jump in either direction, as clocks on walls do. Safe from any thread.
public protocol WallClock: Sendable {
    /// The present time.
    var now: WallTime { get }
}

/// Says how much time has passed. It never goes back. Safe from any thread.
public protocol MonotonicClock: Sendable {
    /// The time since the clock's origin.
    var uptime: MonotonicTime { get }

    /// Calls `body` whenever time has moved otherwise than by passing, until the registration is released.
    ///
    /// Waiters on a clock that is moved by hand learn so that their time may have come. Clocks that only pass need not do
    /// anything.
    func onJump(_ body: @escaping @Sendable () -> Void) -> ClockRegistration?
}

extension MonotonicClock {
    /// A clock that only passes never jumps.
    public func onJump(_ body: @escaping @Sendable () -> Void) -> ClockRegistration? { nil }
}

/// The system's wall clock.
public struct SystemWallClock: WallClock {
    /// The system's wall clock.
    public init() {}

    /// The present time, to the nanosecond where the system has it.
    public var now: WallTime { WallTime(nanosecondsSinceEpoch: readClock(CLOCK_REALTIME)) }
}

/// The system's monotonic clock. It stands still while the machine sleeps.
public struct SystemMonotonicClock: MonotonicClock {
    /// The system's monotonic clock.
    public init() {}

    /// The time since an origin that the system chose.
    public var uptime: MonotonicTime { MonotonicTime(nanoseconds: readClock(CLOCK_MONOTONIC)) }
}

private func readClock(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    // The clocks used here always exist: the call cannot fail.
    _ = unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

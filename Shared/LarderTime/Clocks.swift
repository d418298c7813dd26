import Glibc

/// A time of a monotonic clock, for measuring durations.
///
/// Nanoseconds since an arbitrary origin. Arithmetic saturates.
public struct MonotonicTime: Sendable, Hashable, Comparable {
    /// Nanoseconds since the clock's origin.
    public var nanoseconds: Int64

    /// Creates a time from nanoseconds since the clock's origin.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Whether the left time is earlier.
    public static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The time `duration` later.
    public static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
        MonotonicTime(nanoseconds: time.nanoseconds.saturatingAdded(duration.nanosecondsSaturating))
    }

    /// The duration from the right to the left time.
    public static func - (later: MonotonicTime, earlier: MonotonicTime) -> Duration {
        .nanoseconds(later.nanoseconds.saturatingSubtracted(earlier.nanoseconds))
    }
}

/// A source of the current date and time, which may jump in either direction. Safe from any thread.
public protocol WallClock: Sendable {
    /// The current time.
    var now: WallTime { get }
}

/// A clock that never goes back. Safe from any thread.
public protocol MonotonicClock: Sendable {
    /// The time since the clock's origin.
    var uptime: MonotonicTime { get }

    /// Returns when the clock has reached `time`, immediately if it has already.
    ///
    /// - Throws: immediately when the task is cancelled, or if it was cancelled before.
    func sleep(until time: MonotonicTime) async throws(CancellationError)
}

/// A clock that is moved by hand, which wakes those that wait in the kernel for its time.
package protocol JumpingClock: MonotonicClock {
    /// Calls `body` after each change of the clock until the registration is released.
    func onJump(_ body: @escaping @Sendable () -> Void) -> EventRegistration
}

/// The system's wall clock.
public struct SystemWallClock: WallClock {
    /// The system's wall clock.
    public init() {}

    /// The current time, in nanoseconds if the system supports it.
    public var now: WallTime { WallTime(nanosecondsSinceEpoch: readClock(CLOCK_REALTIME)) }
}

/// The system's monotonic clock, which stops while the machine is suspended.
public struct SystemMonotonicClock: MonotonicClock {
    /// The system's monotonic clock.
    public init() {}

    /// The time since the system's origin.
    public var uptime: MonotonicTime { MonotonicTime(nanoseconds: readClock(CLOCK_MONOTONIC)) }
}

private func readClock(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    // The clocks used here always exist: the call cannot fail.
    _ = unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

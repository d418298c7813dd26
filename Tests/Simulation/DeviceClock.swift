import LarderTime
import Synchronization

/// How far the date of a device is off.
struct DateError: Sendable {
    private var offset = Duration.zero
    /// The change of the offset for each unit of time.
    private var drift = 0.0
    private var since = MonotonicTime(nanoseconds: 0)

    func at(_ time: MonotonicTime) -> Duration { offset + (time - since) * drift }

    /// Sets the date ahead or back.
    mutating func jump(_ distance: Duration) { offset += distance }

    /// Lets the date gain or lose from now on.
    mutating func set(drift: Double, at time: MonotonicTime) {
        (offset, self.drift, since) = (at(time), drift, time)
    }
}

/// The clocks of one process on a device: the simulation's time, from an origin of its own, and a date that somebody may set.
final class DeviceClock: WallClock, MonotonicClock {
    private let base: ManualClock
    /// When the device was booted, on the simulation's clock.
    private let origin: MonotonicTime
    private let error: Mutex<DateError>

    init(_ base: ManualClock, origin: MonotonicTime, error: DateError) {
        self.base = base
        self.origin = origin
        self.error = Mutex(error)
    }

    var now: WallTime { base.now + error.withLock { $0 }.at(base.uptime) }

    var uptime: MonotonicTime { MonotonicTime(nanoseconds: (base.uptime - origin).nanosecondsSaturating) }

    func set(_ error: DateError) { self.error.withLock { $0 = error } }

    func sleep(until time: MonotonicTime) async throws(CancellationError) {
        try await base.sleep(until: origin + .nanoseconds(time.nanoseconds))
    }
}

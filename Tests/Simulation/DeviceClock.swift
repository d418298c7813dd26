import LarderTime
import Synchronization

/// The clocks of one process on a device: the simulation's time, from an origin of its own, and a date that somebody may set.
final class DeviceClock: WallClock, MonotonicClock, Sleeper {
    private let base: ManualClock
    /// When the device was booted, on the simulation's clock.
    private let origin: MonotonicTime
    private let offset: Mutex<Duration>

    init(_ base: ManualClock, origin: MonotonicTime, offset: Duration) {
        self.base = base
        self.origin = origin
        self.offset = Mutex(offset)
    }

    var now: WallTime { base.now + offset.withLock { $0 } }

    var uptime: MonotonicTime { MonotonicTime(nanoseconds: (base.uptime - origin).nanosecondsSaturating) }

    func set(offset: Duration) { self.offset.withLock { $0 = offset } }

    func sleep(until time: MonotonicTime) async throws(CancellationError) {
        try await base.sleep(until: origin + .nanoseconds(time.nanoseconds))
    }
}

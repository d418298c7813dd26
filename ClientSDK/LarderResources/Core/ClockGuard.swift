import LarderStorage
import LarderTime
import Synchronization

/// Reads the clocks together, and notices that the wall clock was set back: what was confirmed before has no known age then.
///
/// A wall clock that was set ahead does no harm: values look older than they are, and are validated again. Safe from
/// any thread.
final class ClockGuard: Sendable {
    private struct State {
        /// The largest difference between the clocks since the wall clock was last set back.
        var offset: Int64
        var highWater: WallTime
    }

    private let wall: any WallClock
    private let monotonic: any MonotonicClock
    private let boot: StampSource?
    private let stamps: StampClock
    private let marks: InvalidationTable
    private let state: Mutex<State>

    /// - Parameter marks: gets the stamps at which the clock is set back.
    init(_ configuration: CacheConfiguration, _ stamps: StampClock, _ marks: InvalidationTable) {
        (wall, monotonic) = (configuration.wallClock, configuration.monotonicClock)
        (self.stamps, self.marks) = (stamps, marks)
        // The monotonic clock stops while the machine sleeps.
        boot = ClockOffset(of: wall, configuration.stamps) == nil ? nil : configuration.stamps
        let now = wall.now
        let base = boot.map { $0.time() &* 1_000 } ?? monotonic.uptime.nanoseconds
        state = Mutex(State(offset: now.nanosecondsSinceEpoch &- base, highWater: now))
    }

    /// The current moment. `wasSetBack` is true once for each time that the clock was set back; that is marked before.
    func read() -> (moment: Moment, wasSetBack: Bool) {
        state.withLock { state in
            // Read within the lock: otherwise the order of two readers could look like a clock that went back.
            let now = wall.now
            let uptime = monotonic.uptime
            let base = boot.map { $0.time() &* 1_000 } ?? uptime.nanoseconds
            let offset = now.nanosecondsSinceEpoch &- base
            let wasSetBack = .nanoseconds(state.offset &- offset) > Moment.tolerance
            if wasSetBack {
                state.highWater = now
                marks.noteClockSetBack(at: stamps.next())
            }
            state.offset = wasSetBack ? offset : max(offset, state.offset)
            state.highWater = max(now, state.highWater)
            return (Moment(wall: now, uptime: uptime, clock: marks.clock), wasSetBack)
        }
    }

    /// The latest time that the wall clock has shown since it was last set back.
    var highWater: WallTime { state.withLock { $0.highWater } }
}

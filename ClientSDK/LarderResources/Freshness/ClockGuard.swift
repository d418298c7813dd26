import LarderTime
import Synchronization

/// Reads both clocks together, and detects that the wall clock was set back: values that were confirmed before have no
/// known age then.
///
/// A wall clock that was set ahead does no harm: values look older than they are, and are validated again. Safe from
/// any thread.
final class ClockGuard: Sendable {
    private struct State {
        var epoch: UInt64 = 0
        /// The largest difference between the clocks since the epoch began.
        var offset: Int64
        var highWater: WallTime
    }

    private let wall: any WallClock
    private let monotonic: any MonotonicClock
    private let state: Mutex<State>

    init(wall: any WallClock, monotonic: any MonotonicClock) {
        self.wall = wall
        self.monotonic = monotonic
        let now = wall.now
        let offset = now.nanosecondsSinceEpoch &- monotonic.uptime.nanoseconds
        state = Mutex(State(offset: offset, highWater: now))
    }

    /// The current moment. `wasSetBack` is true once for each time that the clock was set back.
    func read() -> (moment: Moment, wasSetBack: Bool) {
        state.withLock { state in
            // Read within the lock: otherwise the order of two readers could look like a clock that went back.
            let now = wall.now
            let uptime = monotonic.uptime
            let offset = now.nanosecondsSinceEpoch &- uptime.nanoseconds
            var wasSetBack = false
            if offset > state.offset {
                state.offset = offset
            } else if .nanoseconds(state.offset &- offset) > Moment.tolerance {
                state.epoch += 1
                state.offset = offset
                state.highWater = now
                wasSetBack = true
            }
            if now > state.highWater { state.highWater = now }
            return (Moment(wall: now, uptime: uptime, epoch: state.epoch), wasSetBack)
        }
    }

    /// The number of times that the clock was set back, as far as the last reading has shown.
    var epoch: UInt64 { state.withLock { $0.epoch } }

    /// The latest time that the wall clock has shown since it was last set back.
    var highWater: WallTime { state.withLock { $0.highWater } }
}

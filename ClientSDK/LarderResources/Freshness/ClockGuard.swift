import LarderTime
import Synchronization

/// Reads both clocks together, and notices when the wall clock was set back: from then on nothing that was confirmed before has
/// a known age.
///
/// A wall clock that was set ahead does no harm: values look older than they are, and are confirmed again. Safe from any thread.
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

    /// The present moment. `wasSetBack` is true once for each time that the clock was found to have been.
    func read() -> (moment: Moment, wasSetBack: Bool) {
        state.withLock { state in
            // Both within the lock: otherwise two readers could mistake their order for a clock that went back.
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

    /// The latest time that the wall clock has shown since it was last set back.
    var highWater: WallTime { state.withLock { $0.highWater } }
}

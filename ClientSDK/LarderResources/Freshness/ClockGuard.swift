import LarderTime
import Synchronization

/// Reads both clocks together, and detects that the wall clock was set back: what was confirmed before has no known age then.
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
            let wasSetBack = .nanoseconds(state.offset &- offset) > Moment.tolerance
            if wasSetBack { state.highWater = now }
            state.offset = wasSetBack ? offset : max(offset, state.offset)
            state.highWater = max(now, state.highWater)
            return (Moment(wall: now, uptime: uptime), wasSetBack)
        }
    }

    /// The latest time that the wall clock has shown since it was last set back.
    var highWater: WallTime { state.withLock { $0.highWater } }
}

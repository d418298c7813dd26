import LarderEngine
public import LarderTime
import Synchronization

/// The clock of a world: follows the system, is frozen, set or advanced manually, or runs at a factor.
///
/// Everything in a world that depends on time uses it: dates, expiry, retention, limits, injected delays. Timers run on the
/// thread that moves the clock, or on a loop of the server while the clock runs by itself. A thread that moves the clock waits after each of
/// them until the loops of the server have done what follows from it, so that further timers are set from its time. Safe from any thread.
///
/// Date and uptime are 64-bit nanoseconds: the date ends in April 2262, and the uptime after 292 years. The clock stops there:
/// sums saturate, and a timer at or after the end of the uptime never runs.
public final class WorldClock: WallClock, JumpingClock {
    /// How a clock moves.
    public enum Mode: Sendable, Hashable {
        /// Follows the system's clock.
        case real
        /// Moves only when it is set or advanced.
        case frozen
        /// Runs at this multiple of the system's speed.
        case running(factor: Double)
    }

    struct State {
        var mode = Mode.real
        /// The reading of the server's monotonic clock when the current mode began.
        var anchor: MonotonicTime
        var uptimeAtAnchor: MonotonicTime
        var wallAtAnchor: WallTime
        var timers = TimerQueue()
        var lastTimer: UInt64 = 0
        /// The intervals of the timers that repeat, in nanoseconds.
        var intervals: [TimerID: Int64] = [:]
        /// The timers that somebody waits for: they also run when the world ends.
        var waits: Set<TimerID> = []
        /// The timers that a reset cancels.
        var plans: Set<TimerID> = []
        var hasEnded = false
        /// Those of the server; the first one wakes the clock.
        var loops: [EventLoop] = []
        var armed: (timer: TimerID, deadline: MonotonicTime)?
    }

    private let wall: any WallClock
    private let monotonic: any MonotonicClock
    let state: Mutex<State>
    private let observers = Observers<Void>()

    /// A clock that follows the given ones until it is changed.
    package init(wall: any WallClock, monotonic: any MonotonicClock) {
        self.wall = wall
        self.monotonic = monotonic
        let uptime = monotonic.uptime
        state = Mutex(State(anchor: uptime, uptimeAtAnchor: uptime, wallAtAnchor: wall.now))
    }

    // MARK: Reading

    /// The current time of the world.
    public var now: WallTime { state.withLock { now($0) } }

    /// The elapsed time of the world; setting the clock back does not change it.
    public var uptime: MonotonicTime { state.withLock { uptime($0) } }

    /// The elapsed time of the world at a time of the server's monotonic clock; nil if the world did not follow the system then.
    package func uptime(at system: MonotonicTime) -> MonotonicTime? {
        state.withLock { state in
            guard state.mode == .real, system >= state.anchor else { return nil }
            return state.uptimeAtAnchor + (system - state.anchor)
        }
    }

    /// The current mode.
    public var mode: Mode { state.withLock { $0.mode } }

    /// Whether dates of replies are those of the server's own clock.
    package var followsSystem: Bool { mode == .real }

    /// The time until the next timer; nil if none is set.
    public var untilNextTimer: Duration? {
        state.withLock { state in
            state.timers.next.map { max(.zero, $0 - uptime(state)) }
        }
    }

    /// How far the clock can be advanced until its date or uptime ends.
    package var remaining: Duration {
        state.withLock { state in
            min(
                WallTime(nanosecondsSinceEpoch: .max) - now(state),
                MonotonicTime(nanoseconds: .max) - uptime(state)
            )
        }
    }

    private func now(_ state: State) -> WallTime {
        if state.mode == .real { return wall.now }
        return state.wallAtAnchor + (uptime(state) - state.uptimeAtAnchor)
    }

    func uptime(_ state: State) -> MonotonicTime {
        switch state.mode {
        case .frozen: return state.uptimeAtAnchor
        case .real: return state.uptimeAtAnchor + (monotonic.uptime - state.anchor)
        case .running(let factor):
            let elapsed = Double((monotonic.uptime - state.anchor).nanosecondsSaturating) * factor
            return state.uptimeAtAnchor + .nanoseconds(Int64(min(elapsed, 9e18)))
        }
    }

    // MARK: Moving

    /// Freezes the clock at the current time.
    public func freeze() { change { $0.mode = .frozen } }

    /// Freezes the clock at a given time.
    public func freeze(at time: WallTime) {
        change { $0.mode = .frozen }
        set(to: time)
    }

    /// Lets the clock run from the current time.
    ///
    /// - Parameter factor: the multiple of the system's speed; greater than 0, at most 1,000,000.
    public func run(factor: Double = 1) {
        // In this order NaN counts as the slowest.
        change { $0.mode = .running(factor: min(max(1e-6, factor), 1e6)) }
    }

    /// Returns to the system's time.
    public func followSystem() {
        change { state in
            state.mode = .real
            state.wallAtAnchor = wall.now
        }
    }

    /// Changes the mode, and sets the time if one is given.
    package func set(_ mode: Mode, at time: WallTime? = nil) {
        switch mode {
        case .real: followSystem()
        case .frozen: freeze()
        case .running(let factor): run(factor: factor)
        }
        if let time { set(to: time) }
    }

    /// Sets the time. Forward, all timers until then run on the way; backward, only the date changes.
    public func set(to time: WallTime) {
        let distance = time - now
        if distance > .zero { return advance(by: distance) }
        change { state in
            if state.mode == .real { state.mode = .running(factor: 1) }
            state.wallAtAnchor = time
        }
    }

    /// Advances the clock; due timers run on the way, each at its own time. At the end of its range the clock stops.
    public func advance(by duration: Duration) {
        guard duration > .zero else { return }
        let target = state.withLock { state -> MonotonicTime in
            if state.mode == .real { anchor(&state, mode: .running(factor: 1)) }
            return uptime(state) + duration
        }
        while let (job, loops) = state.withLock({ state -> ((@Sendable () -> Void), [EventLoop])? in
            guard let due = takeDue(target, &state) else { return nil }
            move(&state, to: due.deadline)
            return (due.job, state.loops)
        }) {
            job()
            HTTPServer.settle(loops)
        }
        state.withLock { state in
            move(&state, to: target)
            arm(&state)
        }
        observers.tell(())
    }

    /// Advances to the next timer and runs all timers due at that time.
    ///
    /// - Returns: how far the clock moved; nil if no timer is set.
    @discardableResult public func advanceToNextTimer() -> Duration? {
        guard let distance = untilNextTimer else { return nil }
        // An overdue timer on a running clock only runs; the clock does not move.
        if distance > .zero { advance(by: distance) } else { runDue() }
        return distance
    }

    /// Calls `body` after each manual change of the clock until the registration is released.
    package func onJump(_ body: @escaping @Sendable () -> Void) -> EventRegistration {
        EventRegistration(cancel: observers.add { _ in body() })
    }

    // MARK: State

    private func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            anchor(&state, mode: state.mode)
            body(&state)
            disarm(&state)
            arm(&state)
        }
        observers.tell(())
    }

    /// Starts a new segment of time at the current moment.
    private func anchor(_ state: inout State, mode: Mode) {
        let uptime = uptime(state)
        let now = now(state)
        state.anchor = monotonic.uptime
        state.uptimeAtAnchor = uptime
        state.wallAtAnchor = now
        state.mode = mode
    }

    private func move(_ state: inout State, to time: MonotonicTime) {
        anchor(&state, mode: state.mode)
        guard time > state.uptimeAtAnchor else { return }
        state.wallAtAnchor = state.wallAtAnchor + (time - state.uptimeAtAnchor)
        state.uptimeAtAnchor = time
    }
}

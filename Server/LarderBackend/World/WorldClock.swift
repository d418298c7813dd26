package import LarderEngine
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

    private struct State {
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
    private let state: Mutex<State>
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

    private func uptime(_ state: State) -> MonotonicTime {
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

    // MARK: Timers

    /// Runs a job after a delay in the world's time.
    package func schedule(after delay: Duration, _ job: @escaping @Sendable () -> Void) -> TimerID {
        let id = state.withLock { add(job, after: max(.zero, delay), &$0) }
        if delay <= .zero { runDue() }
        return id
    }

    /// Runs a job at each `interval` of the world's time until it is cancelled.
    ///
    /// If the clock moves over several intervals at once, the job runs once, at the first of them, and next at the first one
    /// after the movement. For jobs such as heartbeats.
    ///
    /// - Parameter interval: greater than 0.
    package func schedule(every interval: Duration, _ job: @escaping @Sendable () -> Void) -> TimerID {
        precondition(interval > .zero, "A timer cannot repeat every \(interval): the interval must be more than 0.")
        return state.withLock { state in
            let id = add(job, after: interval, &state)
            state.intervals[id] = max(1, interval.nanosecondsSaturating)
            return id
        }
    }

    /// Runs a job after a delay in the world's time, unless the world is reset before (`cancelPlans`): for what its user has planned, such as
    /// a step of a script.
    package func plan(after delay: Duration, _ job: @escaping @Sendable () -> Void) {
        state.withLock { state in
            let id = add(job, after: max(.zero, delay), &state)
            state.plans.insert(id)
        }
        if delay <= .zero { runDue() }
    }

    /// Cancels everything that was planned, and ends the waits that end with it.
    package func cancelPlans() {
        for timer in state.withLock({ $0.plans.sorted { $0.rawValue < $1.rawValue } }) {
            endWait(timer)
            cancel(timer)
        }
    }

    /// Runs a job after a delay in the world's time, or when `endWait` is called or the world ends, whichever is first: for a delay that
    /// somebody waits for, such as that of a reply. Without a delay the job runs before the call returns, also on a frozen clock.
    ///
    /// - Parameter endsWithPlans: whether `cancelPlans` ends the wait too.
    package func wait(for delay: Duration, endsWithPlans: Bool = false, _ job: @escaping @Sendable () -> Void)
        -> TimerID
    {
        let id = state.withLock { state -> TimerID? in
            guard !state.hasEnded, delay > .zero else { return nil }
            let id = add(job, after: delay, &state)
            state.waits.insert(id)
            if endsWithPlans { state.plans.insert(id) }
            return id
        }
        if id == nil { job() }
        return id ?? TimerID(rawValue: 0)
    }

    /// As `wait(for:)`, for an exchange: the wait also ends when its client leaves.
    package func wait(for delay: Duration, of exchange: Exchange, _ job: @escaping @Sendable () -> Void) {
        let id = wait(for: delay, job)
        exchange.end(while: { self.state.withLock { $0.waits.contains(id) } }, by: { self.endWait(id) })
    }

    /// Runs the job of a wait now; no effect if it has run.
    private func endWait(_ id: TimerID) {
        let job = state.withLock { state in state.waits.remove(id) == nil ? nil : state.timers.cancel(id) }
        job?()
    }

    /// The number of waits that are not over.
    package var waitCount: Int { state.withLock { $0.waits.count } }

    private func add(_ job: @escaping @Sendable () -> Void, after delay: Duration, _ state: inout State) -> TimerID {
        state.lastTimer += 1
        let id = TimerID(rawValue: state.lastTimer)
        let deadline = uptime(state) + delay
        if !state.hasEnded, deadline.nanoseconds < .max || delay == .zero { state.timers.add(id, at: deadline, job) }
        arm(&state)
        return id
    }

    /// Removes and returns the first due timer; a repeating one is set to its first time after `limit`.
    private func takeDue(
        _ limit: MonotonicTime,
        _ state: inout State
    ) -> (deadline: MonotonicTime, job: @Sendable () -> Void)? {
        guard let due = state.timers.takeFirst(limit) else { return nil }
        state.waits.remove(due.id)
        state.plans.remove(due.id)
        if let interval = state.intervals[due.id] {
            let passed = (limit.nanoseconds - due.deadline.nanoseconds) / interval + 1
            let (distance, overflow) = passed.multipliedReportingOverflow(by: interval)
            let next = due.deadline + .nanoseconds(overflow ? .max : distance)
            if next.nanoseconds < .max {
                state.timers.add(due.id, at: next, due.job)
            } else {
                state.intervals[due.id] = nil
            }
        }
        return (due.deadline, due.job)
    }

    package func cancel(_ timer: TimerID) {
        let job = state.withLock { state in
            state.intervals[timer] = nil
            state.waits.remove(timer)
            state.plans.remove(timer)
            defer { arm(&state) }
            return state.timers.cancel(timer)
        }
        // Released after the lock: the job's deinitialisation may call this clock.
        _ = consume job
    }

    /// Sets the loops of the server, the first of which wakes the clock while it runs by itself. Without one, timers run only when the clock is
    /// moved.
    package func drive(by loops: [EventLoop]) {
        state.withLock { state in
            disarm(&state)
            state.loops = loops
            arm(&state)
        }
    }

    /// Ends all waits and removes the other timers and the driving loop: the world ends. Later timers never run, and later waits end at
    /// once.
    ///
    /// A timer's job usually retains the world, which retains its clock: a pending timer would keep an ended world alive.
    package func end() {
        let (jobs, dropped) = state.withLock { state in
            disarm(&state)
            state.loops = []
            state.hasEnded = true
            let waits = state.waits.sorted { $0.rawValue < $1.rawValue }
            let jobs = waits.compactMap { state.timers.cancel($0) }
            defer {
                (state.waits, state.plans) = ([], [])
                state.timers = TimerQueue()
                state.intervals = [:]
            }
            return (jobs, state.timers)
        }
        // Released after the lock: the job's deinitialisation may call this clock.
        _ = consume dropped
        for job in jobs { job() }
    }

    private func runDue() {
        while let job = state.withLock({ state in takeDue(uptime(state), &state)?.job }) { job() }
        state.withLock { arm(&$0) }
    }

    private func disarm(_ state: inout State) {
        guard let armed = state.armed.take() else { return }
        state.loops.first?.cancel(armed.timer)
    }

    private func arm(_ state: inout State) {
        guard let driver = state.loops.first, let next = state.timers.next else { return disarm(&state) }
        if let armed = state.armed {
            if armed.deadline <= next, state.mode != .frozen { return }
            disarm(&state)
        }
        let left = max(.zero, next - uptime(state))
        let delay: Duration
        switch state.mode {
        case .frozen: return
        case .real: delay = left
        case .running(let factor):
            // On a very slow clock the next timer may never be due.
            delay = .nanoseconds(Int64(min(Double(left.nanosecondsSaturating) / factor, 9e18)))
        }
        let timer = driver.schedule(after: delay) { [weak self] in
            guard let self else { return }
            self.state.withLock { $0.armed = nil }
            runDue()
        }
        state.armed = (timer, next)
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

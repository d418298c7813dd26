package import LarderEngine
import LarderTime
import Synchronization

/// Timers in the world's time, and the loop that wakes the clock for them.
extension WorldClock {
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
    func takeDue(
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

    func runDue() {
        while let job = state.withLock({ state in takeDue(uptime(state), &state)?.job }) { job() }
        state.withLock { arm(&$0) }
    }

    func disarm(_ state: inout State) {
        guard let armed = state.armed.take() else { return }
        state.loops.first?.cancel(armed.timer)
    }

    func arm(_ state: inout State) {
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
}

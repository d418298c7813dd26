import Synchronization

/// A wall clock and a monotonic clock that only tests or a simulation move.
///
/// Safe from any thread. Observers are called after a change, on the thread that made it, without a lock. In a process whose work has
/// one order (`JobOrder`), everything that is ready runs before the time changes, so that no deadline is missed.
///
/// ```swift
/// let clock = ManualClock()
/// let before = clock.now
/// clock.advance(by: .seconds(60))                             // wakes what sleeps until then, in order
/// print(clock.now - before)
/// ```
public final class ManualClock: WallClock, JumpingClock {
    private struct State {
        var wall: WallTime
        var uptime: MonotonicTime
        var lastID: UInt64 = 0
        var sleepers: [(id: UInt64, time: MonotonicTime, wait: Pending<Bool>)] = []
        var watchers: [(id: UInt64, count: Int, wait: Pending<Bool>)] = []
    }

    private let state: Mutex<State>
    private let observers = Observers<Void>()

    /// Creates a clock that shows `wall`.
    public init(_ wall: WallTime = WallTime(seconds: 1_767_225_600)) {
        state = Mutex(State(wall: wall, uptime: MonotonicTime(nanoseconds: 0)))
    }

    /// The current wall time.
    public var now: WallTime { state.withLock { $0.wall } }

    /// The sum of all advances.
    public var uptime: MonotonicTime { state.withLock { $0.uptime } }

    /// Advances both clocks.
    ///
    /// - Parameter duration: not negative.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "The duration must not be negative; use set(wall:) to set the wall clock back.")
        move { state in
            state.wall = state.wall + duration
            state.uptime = state.uptime + duration
        }
    }

    /// Sets the wall clock. The monotonic clock does not change.
    public func set(wall: WallTime) { move { $0.wall = wall } }

    /// Calls `body` after each change until the registration is released.
    package func onJump(_ body: @escaping @Sendable () -> Void) -> EventRegistration {
        EventRegistration(cancel: observers.add { _ in body() })
    }

    private func move(_ change: (inout State) -> Void) {
        JobOrder.current?.settle()
        let awake = state.withLock { state in
            change(&state)
            let uptime = state.uptime
            defer { state.sleepers.removeAll { $0.time <= uptime } }
            return state.sleepers.filter { $0.time <= uptime }
        }
        observers.tell(())
        for sleeper in awake.sorted(by: { ($0.time, $0.id) < ($1.time, $1.id) }) { sleeper.wait.finish(true) }
    }

    // MARK: Sleeping

    /// The number of tasks that sleep on this clock.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// The earliest deadline of the sleeping tasks; nil if there are none.
    public var nextWakeUp: MonotonicTime? { state.withLock { $0.sleepers.map(\.time).min() } }

    func add(_ wait: Pending<Bool>, until time: MonotonicTime) -> UInt64 {
        let (id, ended) = state.withLock { state in
            state.lastID += 1
            guard time > state.uptime else { return (state.lastID, [wait]) }
            state.sleepers.append((state.lastID, time, wait))
            let count = state.sleepers.count
            let seen = state.watchers.filter { $0.count <= count }.map(\.wait)
            state.watchers.removeAll { $0.count <= count }
            return (state.lastID, seen)
        }
        for wait in ended { wait.finish(true) }
        return id
    }

    func remove(_ id: UInt64) { state.withLock { $0.sleepers.removeAll { $0.id == id } } }

    func watch(_ wait: Pending<Bool>, count: Int) -> UInt64 {
        let (id, isThere) = state.withLock { state in
            state.lastID += 1
            guard state.sleepers.count < count else { return (state.lastID, true) }
            state.watchers.append((state.lastID, count, wait))
            return (state.lastID, false)
        }
        if isThere { wait.finish(true) }
        return id
    }

    func unwatch(_ id: UInt64) { state.withLock { $0.watchers.removeAll { $0.id == id } } }
}

import Synchronization

/// Both clocks, moved by hand: for tests, and for worlds whose time stands still.
///
/// Safe from any thread. Observers are called after the time has moved, on the thread that moved it, and never under a lock.
public final class ManualClock: WallClock, MonotonicClock {
    private struct State {
        var wall: WallTime
        var uptime: MonotonicTime
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastID: UInt64 = 0
    }

    private let state: Mutex<State>

    /// A clock that stands at `wall` until it is moved.
    public init(_ wall: WallTime = WallTime(seconds: 1_767_225_600)) {
        state = Mutex(State(wall: wall, uptime: MonotonicTime(nanoseconds: 0)))
    }

    /// The wall time that was set.
    public var now: WallTime { state.withLock { $0.wall } }

    /// The time that was advanced in all.
    public var uptime: MonotonicTime { state.withLock { $0.uptime } }

    /// Lets time pass, on both clocks.
    ///
    /// - Parameter duration: how much; not negative, as time that passes never does.
    public func advance(by duration: Duration) {
        precondition(duration >= .zero, "Time does not pass backwards; set(wall:) moves the wall clock back.")
        move { state in
            state.wall = state.wall + duration
            state.uptime = state.uptime + duration
        }
    }

    /// Sets the wall clock, forward or back; no time passes.
    public func set(wall: WallTime) { move { $0.wall = wall } }

    /// Calls `body` after every movement, until the registration is released.
    public func onJump(_ body: @escaping @Sendable () -> Void) -> ClockRegistration? {
        let id = state.withLock { state in
            state.lastID += 1
            state.observers[state.lastID] = body
            return state.lastID
        }
        return ClockRegistration { [weak self] in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
        }
    }

    private func move(_ change: (inout State) -> Void) {
        let observers = state.withLock { state in
            change(&state)
            return Array(state.observers.values)
        }
        for observer in observers { observer() }
    }
}

/// Keeps an observer of a clock registered for as long as it lives.
public final class ClockRegistration: Sendable {
    private let cancel: @Sendable () -> Void

    /// - Parameter cancel: called once, when the registration is released.
    public init(cancel: @escaping @Sendable () -> Void) { self.cancel = cancel }

    deinit { cancel() }
}

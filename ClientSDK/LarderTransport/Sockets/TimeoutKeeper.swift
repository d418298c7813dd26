import LarderTime
import Synchronization

/// Timers that rarely fire: one task sleeps until the earliest deadline.
///
/// `until` needs two tasks for each timeout; here a timeout costs an entry in a table, because removing it does not
/// wake the sleeping task. On another clock than the system's each timer sleeps in its own task, so that a test can
/// wait for the exact number of sleepers. Safe from any thread.
final class TimeoutKeeper: Sendable {
    private struct Entry {
        let deadline: MonotonicTime
        let body: @Sendable () -> Void
        /// The task of this timer, if tasks are not shared.
        let task: Task<Void, Never>?
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var lastID: UInt64 = 0
        /// The deadline and the identity of the sleeping task.
        var sleep: (until: MonotonicTime, id: UInt64, task: Task<Void, Never>)?
    }

    /// How long a task may sleep for no timer.
    private static let idleMaximum: Duration = .seconds(60)

    let clock: any MonotonicClock
    private let sharesSleep: Bool
    private let state = Mutex(State())

    /// - Parameter sharesSleep: whether one task sleeps for all timers; nil: if the clock is the system's.
    init(_ clock: any MonotonicClock, sharesSleep: Bool? = nil) {
        self.clock = clock
        self.sharesSleep = sharesSleep ?? (clock is SystemMonotonicClock)
    }

    deinit {
        state.withLock { state in
            state.sleep?.task.cancel()
            for entry in state.entries.values { entry.task?.cancel() }
        }
    }

    /// Calls `body` once at the deadline, without a lock, unless the timer is removed before.
    ///
    /// - Returns: the identity for `remove`.
    func set(_ deadline: MonotonicTime, _ body: @escaping @Sendable () -> Void) -> UInt64 {
        let (id, outrun): (UInt64, Task<Void, Never>?) = state.withLock { state in
            state.lastID += 1
            let id = state.lastID
            guard sharesSleep else {
                state.entries[id] = Entry(deadline: deadline, body: body, task: sleeper(of: id, until: deadline))
                return (id, nil)
            }
            state.entries[id] = Entry(deadline: deadline, body: body, task: nil)
            if let sleep = state.sleep, sleep.until <= deadline { return (id, nil) }
            let outrun = state.sleep?.task
            state.sleep = (deadline, id, sleeper(id, until: deadline))
            return (id, outrun)
        }
        outrun?.cancel()
        return id
    }

    /// Removes a timer. A call that is running is not stopped.
    func remove(_ id: UInt64?) {
        guard let id else { return }
        // Released outside of the lock, because a deinitialiser may run.
        let (removed, idle) = state.withLock { state in
            let removed = state.entries.removeValue(forKey: id)
            // A short sleep is likely to be needed again, and ends soon.
            guard state.entries.isEmpty, let sleep = state.sleep, sleep.until - clock.uptime > Self.idleMaximum else {
                return (removed, Task<Void, Never>?.none)
            }
            state.sleep = nil
            return (removed, sleep.task)
        }
        removed?.task?.cancel()
        idle?.cancel()
    }

    private func sleeper(of id: UInt64, until deadline: MonotonicTime) -> Task<Void, Never> {
        Task { [weak self, clock] in
            do { try await clock.sleep(until: deadline) } catch { return }
            guard let self else { return }
            state.withLock { $0.entries.removeValue(forKey: id) }?.body()
        }
    }

    private func sleeper(_ id: UInt64, until first: MonotonicTime) -> Task<Void, Never> {
        Task { [weak self, clock] in
            var next = first
            while true {
                do { try await clock.sleep(until: next) } catch { return }
                guard let later = self?.wake(id) else { return }
                next = later
            }
        }
    }

    /// Calls the timers that are due and returns the next deadline; nil if there is none.
    private func wake(_ id: UInt64) -> MonotonicTime? {
        let (due, next): ([@Sendable () -> Void], MonotonicTime?) = state.withLock { state in
            guard let sleep = state.sleep, sleep.id == id else { return ([], nil) }
            let now = clock.uptime
            let due = state.entries.filter { $0.value.deadline <= now }.sorted {
                ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key)
            }
            for entry in due { state.entries[entry.key] = nil }
            let next = state.entries.values.map(\.deadline).min()
            state.sleep = next.map { ($0, id, sleep.task) }
            return (due.map(\.value.body), next)
        }
        for body in due { body() }
        return next
    }
}

import LarderTime
import Synchronization

/// Calls when a time has come, for many who seldom need it: one task sleeps until the first of their times, and no others.
///
/// What is removed leaves the sleeping task alone; it looks again when it wakes. So a request costs an entry in a table, and no
/// task. On a clock that is not the system's everybody sleeps in a task of his own, so that a test that moves the clock can wait
/// for exactly those who wait. Safe from any thread.
final class TimeoutKeeper: Sendable {
    typealias Sleeping = MonotonicClock & Sleeper

    private struct Entry {
        let deadline: MonotonicTime
        let body: @Sendable () -> Void
        /// The task that sleeps for this one alone.
        let task: Task<Void, Never>?
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var lastID: UInt64 = 0
        /// Until when the task sleeps, and which one it is.
        var sleep: (until: MonotonicTime, id: UInt64, task: Task<Void, Never>)?
    }

    let clock: any Sleeping
    private let sharesSleep: Bool
    private let state = Mutex(State())

    /// - Parameter sharesSleep: whether one task sleeps for all; nil: where the clock is the system's.
    init(_ clock: any Sleeping, sharesSleep: Bool? = nil) {
        self.clock = clock
        self.sharesSleep = sharesSleep ?? (clock is SystemMonotonicClock)
    }

    deinit {
        state.withLock { state in
            state.sleep?.task.cancel()
            for entry in state.entries.values { entry.task?.cancel() }
        }
    }

    /// Calls `body` once when the time has come, unless it is removed before. It is called under no lock of this.
    ///
    /// - Returns: by what it is removed.
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

    /// Calls it no more. What is being called just now is not stopped.
    func remove(_ id: UInt64?) {
        guard let id else { return }
        // Released outside of the lock: the last to hold something may have much to do.
        let removed = state.withLock { $0.entries.removeValue(forKey: id) }
        removed?.task?.cancel()
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

    /// Calls those whose time has come, and gives the time of the next; nil where the task has nothing to wait for.
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

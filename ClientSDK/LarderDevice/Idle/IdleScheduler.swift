public import LarderTime
import Synchronization

/// Delays work until the user pauses: decoding of pictures while nobody scrolls. Safe from any thread.
///
/// Work that is submitted while nobody interacts runs at once, on the caller's thread. During an interaction and for `quiet` after it,
/// work waits; then it runs in the order of submission, at most `countMaximum` pieces at a time with a pause in between. Work that
/// has waited for `ageMaximum` runs during an interaction too. Work that is no longer wanted is dropped. No task exists while
/// nothing waits.
public final class IdleScheduler: Sendable {
    private struct Work: Sendable {
        let isWanted: @Sendable () -> Bool
        let run: @Sendable () -> Void
    }

    private struct State {
        var queue: IdleQueue<Work>
        /// Runs the waiting work; nil while there is none.
        var task: Task<Void, Never>?
    }

    private let countMaximum: Int
    private let pause: Duration
    private let clock: any MonotonicClock
    private let state: Mutex<State>

    /// - Parameters:
    ///   - quiet: how long after an interaction work runs again.
    ///   - countMaximum: the maximum number of pieces of work at a time; at least 1.
    ///   - pause: the time between them: half a frame lets the user interface draw.
    ///   - ageMaximum: the maximum time that work waits.
    ///   - clock: used for all times and for waiting.
    public init(
        quiet: Duration = .milliseconds(100),
        countMaximum: Int = 2,
        pause: Duration = .milliseconds(8),
        ageMaximum: Duration = .seconds(1),
        clock: any MonotonicClock = SystemMonotonicClock()
    ) {
        self.countMaximum = max(1, countMaximum)
        self.pause = max(.milliseconds(1), pause)
        self.clock = clock
        state = Mutex(State(queue: IdleQueue(quiet: quiet, ageMaximum: ageMaximum)))
    }

    deinit { state.withLock { $0.task?.cancel() } }

    /// Records that the user touches, scrolls or types. Call it for each such event.
    public func interacted() {
        let now = clock.uptime
        state.withLock { $0.queue.noteInteraction(at: now) }
    }

    /// Whether nobody interacts and no work waits.
    package var isIdle: Bool {
        let now = clock.uptime
        return state.withLock { $0.queue.count == 0 && $0.queue.isIdle(at: now) }
    }

    /// Runs work at once if nobody interacts, otherwise later.
    ///
    /// - Parameters:
    ///   - isWanted: called before the work runs, holding no lock; work that is not wanted is dropped.
    ///   - run: does the work. It should be short or hand the work on.
    public func submit(isWanted: @escaping @Sendable () -> Bool = { true }, run: @escaping @Sendable () -> Void) {
        let now = clock.uptime
        let runsNow = state.withLock { state in
            // Work that waits already comes first.
            if state.queue.count == 0, state.queue.isIdle(at: now) { return true }
            state.queue.add(Work(isWanted: isWanted, run: run), at: now)
            if state.task == nil { state.task = makeTask() }
            return false
        }
        if runsNow, isWanted() { run() }
    }

    private func makeTask() -> Task<Void, Never> {
        Task.detached { [weak self, clock] in
            while let delay = self?.step() {
                do { try await clock.sleep(until: clock.uptime + delay) } catch { return }
            }
        }
    }

    /// Runs the work that is due. Returns the time until the next step; nil if no work is left.
    private func step() -> Duration? {
        let now = clock.uptime
        var count = 0
        while count < countMaximum, let work = state.withLock({ $0.queue.takeDue(at: now) }) {
            guard work.isWanted() else { continue }
            work.run()
            count += 1
        }
        return state.withLock { state in
            guard let delay = state.queue.delay(at: now) else {
                // Under the lock under which work is submitted, so that no work is added without a task.
                state.task = nil
                return nil
            }
            return max(delay, pause)
        }
    }
}

public import LarderTime
import Synchronization

/// Drains an `IdleScheduler` in an ordinary program, as on Linux: there is no run loop to ask, so time without interaction is
/// what idle means. Nothing runs while nothing waits. Safe from any thread.
///
///     let driver = IdleDriver(scheduler)   // keep it; releasing it stops
public final class IdleDriver: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        /// Whether work came since the task last looked.
        var hasMore = false
        var isStopped = false
    }

    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let scheduler: IdleScheduler
    private let shared = Shared()

    /// - Parameters:
    ///   - scheduler: what to drain; a scheduler has one driver.
    ///   - pause: how long to rest between two moments at which something was done.
    ///   - wait: waits; it throws when the waiting task is cancelled.
    public init(
        _ scheduler: IdleScheduler,
        pause: Duration = .milliseconds(8),
        wait: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.scheduler = scheduler
        let shared = shared
        let wake: @Sendable () -> Void = { [weak scheduler] in
            guard let scheduler else { return }
            shared.state.withLock { state in
                state.hasMore = true
                guard state.task == nil, !state.isStopped else { return }
                state.task = Task.detached { await Self.run(scheduler, shared, pause, wait) }
            }
        }
        scheduler.setOnSubmit(wake)
        if scheduler.count > 0 { wake() }
    }

    /// - Parameters:
    ///   - scheduler: what to drain; a scheduler has one driver.
    ///   - pause: how long to rest between two moments at which something was done.
    ///   - clock: measures the rests; the scheduler's own.
    ///   - sleeper: waits. It must follow `clock`.
    public convenience init(
        _ scheduler: IdleScheduler,
        pause: Duration = .milliseconds(8),
        clock: any MonotonicClock = SystemMonotonicClock(),
        sleeper: any Sleeper = SystemSleeper()
    ) {
        self.init(scheduler, pause: pause) { try await sleeper.sleep(until: clock.uptime + $0) }
    }

    deinit {
        scheduler.setOnSubmit(nil)
        shared.state.withLock { state in
            state.isStopped = true
            state.task?.cancel()
        }
    }

    private static func run(
        _ scheduler: IdleScheduler,
        _ shared: Shared,
        _ pause: Duration,
        _ wait: @Sendable (Duration) async throws -> Void
    ) async {
        while !Task.isCancelled {
            shared.state.withLock { $0.hasMore = false }
            guard let rest = scheduler.untilNext else {
                let isOver = shared.state.withLock { state in
                    if state.hasMore { return false }
                    state.task = nil
                    return true
                }
                if isOver { return }
                continue
            }
            if rest == .zero { scheduler.drain() }
            do {
                try await wait(max(rest, pause))
            } catch {
                return
            }
        }
    }
}

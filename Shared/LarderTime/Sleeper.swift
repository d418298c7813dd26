/// Suspends tasks until a clock has reached a time. Safe from any task.
public protocol Sleeper: Sendable {
    /// Returns when the clock has reached `time`, immediately if it has already.
    ///
    /// - Throws: immediately when the task is cancelled, or if it was cancelled before.
    func sleep(until time: MonotonicTime) async throws(CancellationError)
}

extension SystemMonotonicClock: Sleeper {
    /// Returns when the system's clock has reached `time`; later by the scheduler's latency, never earlier.
    public func sleep(until time: MonotonicTime) async throws(CancellationError) {
        // `SuspendingClock` may differ slightly from this clock, so the wait is repeated.
        while true {
            let left = time - uptime
            guard left > .zero, !Task.isCancelled else { break }
            do { try await SuspendingClock().sleep(for: left) } catch { throw CancellationError() }
        }
        guard !Task.isCancelled else { throw CancellationError() }
    }
}

extension ManualClock: Sleeper {
    /// Returns when the clock has been advanced to `time` or beyond.
    public func sleep(until time: MonotonicTime) async throws(CancellationError) {
        guard !Task.isCancelled else { throw CancellationError() }
        let wait = Pending<Bool>()
        let id = add(wait, until: time)
        let isAwake = await wait.value(ifCancelled: false) { remove(id) }
        guard isAwake else { throw CancellationError() }
    }

    /// Returns when at least `count` tasks sleep on this clock.
    ///
    /// - Throws: when the waiting task is cancelled.
    public func waitForSleepers(_ count: Int = 1) async throws(CancellationError) {
        guard !Task.isCancelled else { throw CancellationError() }
        let wait = Pending<Bool>()
        let id = watch(wait, count: count)
        let isAwake = await wait.value(ifCancelled: false) { unwatch(id) }
        guard isAwake else { throw CancellationError() }
    }
}

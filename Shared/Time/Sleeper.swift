/// Waits until a clock has reached a point. Safe from any task.
public protocol Sleeper: Sendable {
    /// Returns when the clock has reached `time`, at once where it has already.
    ///
    /// - Throws: when the waiting task is cancelled, at once and also if it was cancelled before.
    func sleep(until time: MonotonicTime) async throws(CancellationError)
}

/// Waits on the system's monotonic clock, the one that `SystemMonotonicClock` tells.
public struct SystemSleeper: Sleeper {
    /// Waits on the system's monotonic clock.
    public init() {}

    /// Returns when the system's clock has reached `time`; late by what the scheduler takes, never early.
    public func sleep(until time: MonotonicTime) async throws(CancellationError) {
        let clock = SystemMonotonicClock()
        // The two clocks of the system may differ by a little: whoever waited is never told that it is time when it is not.
        while true {
            let left = time - clock.uptime
            guard left > .zero, !Task.isCancelled else { break }
            do { try await SuspendingClock().sleep(for: left) } catch { throw CancellationError() }
        }
        guard !Task.isCancelled else { throw CancellationError() }
    }
}

extension SystemMonotonicClock: Sleeper {
    /// Returns when the system's clock has reached `time`, as `SystemSleeper` does.
    public func sleep(until time: MonotonicTime) async throws(CancellationError) {
        try await SystemSleeper().sleep(until: time)
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

    /// Returns when at least `count` tasks sleep on this clock: then it may be advanced, and all of them were there.
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

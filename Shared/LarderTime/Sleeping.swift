extension SystemMonotonicClock {
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

extension ManualClock {
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

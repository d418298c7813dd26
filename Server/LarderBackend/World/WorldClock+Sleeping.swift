public import LarderTime

/// A client under test can use the clock of its world: then both see one time, and one movement of the clock reaches the timers of
/// both, in order.
extension WorldClock {
    /// Returns when the clock has reached `time`. A sleep ends only by the clock or by cancellation, also after the world's end.
    public func sleep(until time: MonotonicTime) async throws(CancellationError) {
        guard !Task.isCancelled else { throw CancellationError() }
        let wait = Pending<Bool>()
        let timer = schedule(after: time - uptime) { wait.finish(true) }
        let isAwake = await wait.value(ifCancelled: false) { self.cancel(timer) }
        guard isAwake else { throw CancellationError() }
    }
}

import Synchronization

/// Threads for work that would hold up a loop. Each lives as long as there is work, so that an idle server has none. Safe from any
/// thread.
final class WorkerThreads: Sendable {
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var threadCount = 0
    }

    private let state = Mutex(State())
    private static let threadsMaximum = 4

    /// Runs a job on a thread, after earlier ones if all threads are busy.
    func run(_ job: @escaping @Sendable () -> Void) {
        let mustStart = state.withLock { state in
            state.jobs.append(job)
            guard state.threadCount < Self.threadsMaximum else { return false }
            state.threadCount += 1
            return true
        }
        if mustStart { SystemThread.start { [self] in work() } }
    }

    private func work() {
        while let job = next() { job() }
    }

    /// The next job; nil if there is none, and the thread ends.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard !state.jobs.isEmpty else {
                state.threadCount -= 1
                return nil
            }
            return state.jobs.removeFirst()
        }
    }
}

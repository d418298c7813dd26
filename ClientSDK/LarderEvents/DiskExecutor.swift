import Dispatch
import Foundation
import Synchronization

/// Runs the parts of asynchronous functions that may wait for the disk, on threads of its own, so that they hold neither the caller's
/// actor nor a thread of the concurrency runtime.
///
/// Jobs begin in order. Threads start when they are needed and end with the executor. Safe from any thread.
package final class DiskExecutor: TaskExecutor {
    private struct State {
        /// With the executor, which must exist until its job has run.
        var jobs = FIFO<(UnownedJob, DiskExecutor)>()
        var idleCount = 0
        var threadCount = 0
        var isClosed = false
    }

    /// What the threads share with the executor, which they do not keep.
    private final class Workshop: Sendable {
        let state = Mutex(State())
        let wakeUps = DispatchSemaphore(value: 0)

        func work() {
            while true {
                let next = state.withLock { state -> (UnownedJob, DiskExecutor)?? in
                    if let job = state.jobs.popFirst() { return .some(job) }
                    if state.isClosed { return nil }
                    state.idleCount += 1
                    return .some(nil)
                }
                guard let next else { return }
                guard let (job, executor) = next else {
                    wakeUps.wait()
                    continue
                }
                unsafe job.runSynchronously(on: executor.asUnownedTaskExecutor())
            }
        }
    }

    private let workshop = Workshop()
    private let threadsMaximum: Int

    /// - Parameter threadsMaximum: how many jobs run at once.
    package init(threadsMaximum: Int) { self.threadsMaximum = max(1, threadsMaximum) }

    /// Whether no job waits or runs. For tests that let time pass only when nothing is at work.
    package var isIdle: Bool {
        workshop.state.withLock { $0.jobs.isEmpty && $0.idleCount == $0.threadCount }
    }

    deinit {
        let idle = workshop.state.withLock { state in
            state.isClosed = true
            defer { state.idleCount = 0 }
            return state.idleCount
        }
        for _ in 0..<idle { workshop.wakeUps.signal() }
    }

    /// Adds a job. Cost: some microseconds, which is the wake-up of a thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let (wakes, starts) = workshop.state.withLock { state in
            state.jobs.append((job, self))
            if state.idleCount > 0 {
                state.idleCount -= 1
                return (true, false)
            }
            guard state.threadCount < threadsMaximum else { return (false, false) }
            state.threadCount += 1
            return (false, true)
        }
        if wakes { workshop.wakeUps.signal() }
        guard starts else { return }
        let workshop = workshop
        let thread = Thread {
            // On Linux only a running thread can name itself.
            Thread.current.name = "larder disk"
            workshop.work()
        }
        // Codecs of the app run here too.
        thread.stackSize = 1 << 20
        thread.start()
    }
}

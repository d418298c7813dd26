import Dispatch
import Foundation
package import LarderTime
import Synchronization

/// Runs the parts of asynchronous functions that may wait for the disk, on threads of its own, so that they hold neither the caller's
/// actor nor a thread of the concurrency runtime.
///
/// Jobs begin in order. Threads start when they are needed and end with the executor. In a process whose work has one order
/// (`JobOrder`), the jobs have their places in it instead of threads. Safe from any thread.
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

        func runFirst() {
            guard let (job, executor) = state.withLock({ $0.jobs.popFirst() }) else { return }
            let thread = Thread.current.threadDictionary
            let mark = thread[DiskExecutor.mark]
            thread[DiskExecutor.mark] = true
            unsafe job.runSynchronously(on: executor.asUnownedTaskExecutor())
            thread[DiskExecutor.mark] = mark
        }

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

    private static let mark = "larder.disk"

    /// Whether the calling thread belongs to an executor for the disk.
    package static var isCurrentThread: Bool { Thread.current.threadDictionary[mark] != nil }

    private let workshop = Workshop()
    private let threadsMaximum: Int
    private let order: JobOrder?

    /// - Parameters:
    ///   - threadsMaximum: how many jobs run at once.
    ///   - order: the order of the process; nil: threads run the jobs.
    package init(threadsMaximum: Int, order: JobOrder? = .current) {
        self.threadsMaximum = max(1, threadsMaximum)
        self.order = order
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
        if let order {
            workshop.state.withLock { $0.jobs.append((job, self)) }
            return order.add { [workshop] in workshop.runFirst() }
        }
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
            // A name is not reliable: Foundation on Linux ignores it if the thread runs before its creator knows it.
            Thread.current.name = "larder disk"
            Thread.current.threadDictionary[Self.mark] = true
            workshop.work()
        }
        // Codecs of the app run here too.
        thread.stackSize = 1 << 20
        thread.start()
    }
}

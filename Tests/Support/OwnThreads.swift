import Foundation
import LarderTime

/// Runs each job on a thread of its own, so that a blocking job does not delay other tasks. If the process has an order, jobs have their
/// places in it instead.
package final class OwnThreads: TaskExecutor {
    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if let order = JobOrder.current {
            return order.add { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
        Thread { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }.start()
    }
}

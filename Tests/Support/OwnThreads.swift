import Foundation

/// Runs each job on a thread of its own, outside of the order of the process, so that a blocking job does not delay other tasks.
package final class OwnThreads: TaskExecutor {
    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }.start()
    }
}

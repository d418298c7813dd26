import LarderTime
import Synchronization

/// Stopping and the end of the thread.
extension EventLoop {
    func beginStop(grace: Duration) {
        guard !isStopping else { return }
        isStopping = true
        listen(false)
        stopDeadline = SystemMonotonicClock().uptime + grace
        for connection in Array(connections.values) { connection.beginStop() }
        flushDirty()
    }

    func end() {
        registration = nil
        listener = nil
        for pool in pools { pool.end() }
        pools = []
        poller.forget(wakeUp.descriptor)
        let (endings, dropped) = mailbox.withLock { mailbox in
            mailbox.hasEnded = true
            defer {
                mailbox.jobs.removeAll()
                mailbox.endings.removeAll()
            }
            return (mailbox.endings, mailbox.jobs)
        }
        for job in jobs.reversed() + dropped { job.otherwise?() }
        jobs = []
        for ending in endings { ending() }
    }
}

/// What a loop has to do, and what it holds for clients.
package struct LoopActivity: Sendable, Hashable {
    /// The number of requests whose reply is not completely written.
    package var exchangeCount = 0
    /// The number of connections whose client sends no more.
    package var departedCount = 0
    /// The number of requests to other servers, tunnels included.
    package var upstreamCount = 0
    package var timerCount = 0
    /// Whether the loop would not wait: a descriptor or a job is ready, or a timer is due.
    package var isBusy = false
}

extension EventLoop {
    /// What the loop does at present. On its thread.
    package var activity: LoopActivity {
        precondition(isCurrent, "A loop's activity must be read on its thread.")
        var activity = LoopActivity()
        for connection in connections.values {
            if connection.pendingReply != nil || !connection.output.isEmpty { activity.exchangeCount += 1 }
            if connection.hasPeerEnded { activity.departedCount += 1 }
        }
        for pool in pools { activity.upstreamCount += pool.exchangeCount }
        activity.timerCount = timers.count
        // Readiness is level-triggered: what is reported here is reported again to the loop's own wait.
        activity.isBusy = timeout() == 0 || !poller.wait(timeout: 0).isEmpty
        return activity
    }
}

extension EventLoop {
    /// What goes on in the loop, a sentence each; empty if it would wait, and holds nothing for clients that have left. On its thread.
    package func activity(countsTimers: Bool) -> [String] {
        precondition(isCurrent, "A loop's activity must be read on its thread.")
        let open = connections.values
        // Readiness is level-triggered: what is reported here is reported again to the loop's own wait.
        let isBusy = timeout() == 0 || !poller.wait(timeout: 0).isEmpty
        let found = [
            (open.count { $0.pendingReply != nil || !$0.output.isEmpty }, "exchanges whose reply is not sent"),
            (open.count { $0.hasPeerEnded }, "connections whose client sends no more"),
            (pools.reduce(0) { $0 + $1.exchangeCount }, "requests to other servers"),
            (countsTimers ? timers.count : 0, "timers"), (isBusy ? 1 : 0, "loop that does not wait"),
        ]
        return found.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
    }
}

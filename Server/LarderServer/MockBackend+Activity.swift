import LarderEngine

extension MockBackend {
    /// What goes on in the server, a sentence each; empty if it would sleep until a client does something, and holds nothing for clients that
    /// have left.
    ///
    /// For the end of a test whose clients are closed. What ends by itself is waited for: this returns a sentence only when the task is
    /// cancelled, as a test is at its time limit.
    package func activity() async -> [String] {
        while true {
            let found = await look()
            if found.isEmpty || Task.isCancelled { return found }
            await Task.yield()
        }
    }

    private func look() async -> [String] {
        var found: [String] = []
        func note(_ count: Int, _ what: String) { if count > 0 { found.append("\(count) \(what)") } }
        var hasReaders = false
        for world in plane.worlds.all {
            if world.live.readerCount > 0 { hasReaders = true }
            note(world.clock.waitCount, "waits by the clock of '\(world.id)'")
            note(world.control.gates.held.count, "exchanges held by gates of '\(world.id)'")
        }
        for loop in loops {
            found += await withCheckedContinuation { continuation in
                loop.execute(
                    // Live channels have heartbeats.
                    { [hasReaders] in continuation.resume(returning: loop.activity(countsTimers: !hasReaders)) },
                    // The server has stopped.
                    orElse: { continuation.resume(returning: []) }
                )
            }
        }
        return found
    }
}

extension LarderClient {
    /// Has a further memory guard stop the client's work and take its memory back when memory is short, in that order: what is
    /// cleared while loads go on comes back at once. Its own guard does so by itself (`Upkeep.memory`).
    ///
    /// - Returns: what keeps it so; released, the guard lets the client be.
    public func obey(_ memory: MemoryGuard) -> EventRegistration {
        memory.register(LarderClientUpkeep.reaction(steering))
    }

    /// Follows a further network monitor until the calling task is cancelled: what is done by itself is as that one says, and when
    /// the network returns, what was changed here is sent, what somebody looks at is refreshed, and pictures that failed are tried
    /// again. Its own monitor is followed by itself (`Upkeep.network`).
    public func follow(_ network: NetworkMonitor) async {
        for await conduct in network.conducts { steering.follow(conduct) }
    }
}

extension APIClient.Services {
    /// When the client maintains its stores: removes outdated rows, returns free pages, empties the logs.
    ///
    /// The work is done in steps, and only while nobody waits: not during an interaction (`APIClient.idle`) and not under memory pressure
    /// (`APIClient.memory`). A write to the store waits for at most one part of a step.
    package struct Maintenance: Sendable {
        /// The time from the start of the client, or from the end of a round, to the first round and the next one.
        package var delay: Duration = .seconds(20)
        package var interval: Duration = .seconds(900)
        /// The time between two steps, and between two checks whether somebody waits.
        package var pause: Duration = .milliseconds(50)

        /// Creates the standard settings.
        package init() {}
    }
}

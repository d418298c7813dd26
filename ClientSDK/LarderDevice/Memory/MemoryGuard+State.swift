package import LarderEvents

extension MemoryGuard {
    /// The reported pressure and the limits that follow from it.
    package struct State: Sendable, Hashable {
        /// The last reported level.
        package var reported: MemoryLevel
        /// The cause, for display.
        package var cause: String
        /// The limits now.
        package var limits: MemoryLimits

        /// The state before any report.
        package static let initial = State(reported: .normal, cause: "no report yet", limits: .normal)
    }
}

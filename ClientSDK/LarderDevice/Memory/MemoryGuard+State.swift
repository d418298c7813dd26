public import LarderEvents

extension MemoryGuard {
    /// The reported pressure and the limits that follow from it.
    public struct State: Sendable, Hashable {
        /// The last reported level.
        public var reported: MemoryLevel
        /// The cause, for display.
        public var cause: String
        /// The limits now.
        public var limits: MemoryLimits

        /// The state before any report.
        public static let initial = State(reported: .normal, cause: "no report yet", limits: .normal)
    }
}

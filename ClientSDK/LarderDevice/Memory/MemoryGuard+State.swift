public import LarderEvents

extension MemoryGuard {
    /// The reported pressure and the limits that follow from it.
    public struct State: Sendable, Hashable {
        /// The last reported level.
        public var told: MemoryLevel
        /// The cause, for display.
        public var cause: String
        /// The limits now.
        public var limits: MemoryLimits

        /// The state before any report.
        public static let initial = State(told: .normal, cause: "no report yet", limits: .normal)
    }
}

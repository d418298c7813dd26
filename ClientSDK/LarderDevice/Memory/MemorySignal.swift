public import LarderEvents

extension MemoryGuard {
    /// A report of a memory source.
    public struct Signal: Sendable, Hashable {
        /// The pressure level.
        public var level: MemoryLevel
        /// The cause, for display.
        public var cause: String

        /// Creates a signal.
        public init(_ level: MemoryLevel, cause: String) {
            self.level = level
            self.cause = cause
        }
    }
}

package import LarderEvents

extension MemoryGuard {
    /// A report of a memory source.
    package struct Signal: Sendable, Hashable {
        /// The pressure level.
        package var level: MemoryLevel
        /// The cause, for display.
        package var cause: String

        package init(_ level: MemoryLevel, cause: String) {
            self.level = level
            self.cause = cause
        }
    }
}

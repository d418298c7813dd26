/// What a source says of memory.
public struct MemorySignal: Sendable, Hashable {
    /// How short memory is.
    public var level: MemoryLevel
    /// What the source saw, for people.
    public var cause: String

    /// A signal.
    public init(_ level: MemoryLevel, cause: String) {
        self.level = level
        self.cause = cause
    }
}

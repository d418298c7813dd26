/// What the memory guard knows, does, and has done.
public struct MemoryState: Sendable, Hashable {
    /// What the source said last.
    public var told: MemoryLevel
    /// What the source saw, for people.
    public var cause: String
    /// What is done about it.
    public var posture: MemoryPosture

    /// Memory of which nothing was heard.
    public static let initial = MemoryState(told: .normal, cause: "nothing was heard", posture: .normal)
}

/// What a posture has brought.
public struct MemoryReport: Sendable, Hashable {
    /// What one reactor did.
    public struct Entry: Sendable, Hashable {
        /// Its name.
        public var name: String
        /// How many loads it cancelled.
        public var loadsCancelled: Int
        /// About how many bytes it freed.
        public var bytesFreed: Int
    }

    /// The state that was applied.
    public var state: MemoryState
    /// Whether the posture was applied before, and is now only held.
    public var isHolding: Bool
    /// What each reactor did, in the order in which they work.
    public var entries: [Entry]

    /// How many loads were cancelled in all.
    public var loadsCancelled: Int { entries.reduce(0) { $0 &+ $1.loadsCancelled } }
    /// About how many bytes were freed in all.
    public var bytesFreed: Int { entries.reduce(0) { $0 &+ $1.bytesFreed } }
}

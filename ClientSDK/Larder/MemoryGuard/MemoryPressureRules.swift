/// From which figures of the system on memory counts as short.
public struct MemoryPressureRules: Sendable, Hashable {
    /// The share of the control group's limit from which on it is a warning.
    public var warningShare = 0.85
    /// The share from which on it is critical.
    public var criticalShare = 0.95
    /// The percentage of ten seconds in which some task waited for memory, from which on it is a warning.
    public var warningStall = 10.0
    /// The percentage in which all tasks waited, from which on it is critical.
    public var criticalStall = 10.0

    /// What the kernel's own tools (oomd) act upon, or a little before.
    public init() {}

    /// What stalls mean.
    func level(_ stall: PressureStall) -> MemoryLevel {
        if stall.full >= criticalStall { return .critical }
        return stall.some >= warningStall ? .warning : .normal
    }

    /// What a group's use means, and what has happened to it since the last look.
    func level(_ group: MemoryCgroup, since old: MemoryCgroup?) -> MemoryLevel {
        if let old {
            if group.maxEvents > old.maxEvents { return .critical }
            if group.highEvents > old.highEvents { return .warning }
        }
        guard let share = group.share else { return .normal }
        if share >= criticalShare { return .critical }
        return share >= warningShare ? .warning : .normal
    }
}

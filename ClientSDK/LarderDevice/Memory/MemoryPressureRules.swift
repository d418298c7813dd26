import LarderEvents

/// The figures of the system from which memory counts as short, near those of systemd-oomd.
enum MemoryPressureRules {
    /// The share of the control group's limit for a warning.
    private static let warningShare = 0.85
    /// The share of the limit for critical pressure.
    private static let criticalShare = 0.95
    /// The percentage of ten seconds in which some task waited for memory, for a warning.
    private static let warningStall = 10.0
    /// The percentage in which all tasks waited, for critical pressure.
    private static let criticalStall = 10.0

    static func level(_ stall: PressureStall) -> MemoryLevel {
        if stall.full >= criticalStall { return .critical }
        return stall.some >= warningStall ? .warning : .normal
    }

    /// The level for a group's use and its events since the last look.
    static func level(_ group: MemoryCgroup, since old: MemoryCgroup?) -> MemoryLevel {
        if let old, group.outOfMemoryEvents > old.outOfMemoryEvents { return .critical }
        guard let share = group.share else { return .normal }
        if share >= criticalShare { return .critical }
        return share >= warningShare ? .warning : .normal
    }
}

import LarderEvents

/// The figures of the system from which memory counts as short.
struct MemoryPressureRules: Sendable, Hashable {
    /// The share of the control group's limit for a warning.
    var warningShare = 0.85
    /// The share of the limit for critical pressure.
    var criticalShare = 0.95
    /// The percentage of ten seconds in which some task waited for memory, for a warning.
    var warningStall = 10.0
    /// The percentage in which all tasks waited, for critical pressure.
    var criticalStall = 10.0

    /// Defaults near those of systemd-oomd.
    init() {}

    func level(_ stall: PressureStall) -> MemoryLevel {
        if stall.full >= criticalStall { return .critical }
        return stall.some >= warningStall ? .warning : .normal
    }

    /// The level for a group's use and its events since the last look.
    func level(_ group: MemoryCgroup, since old: MemoryCgroup?) -> MemoryLevel {
        if let old, group.outOfMemoryEvents > old.outOfMemoryEvents { return .critical }
        guard let share = group.share else { return .normal }
        if share >= criticalShare { return .critical }
        return share >= warningShare ? .warning : .normal
    }
}

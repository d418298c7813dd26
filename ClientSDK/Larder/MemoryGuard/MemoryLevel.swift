/// How short memory is.
public enum MemoryLevel: Int, Sendable, Hashable, Comparable, CaseIterable, CustomStringConvertible {
    /// There is enough.
    case normal
    /// It gets short: what can be had again should go.
    case warning
    /// The process is about to be killed.
    case critical

    /// Orders levels from enough to too little.
    public static func < (left: MemoryLevel, right: MemoryLevel) -> Bool { left.rawValue < right.rawValue }

    /// The level's name.
    public var description: String {
        switch self {
        case .normal: "normal"
        case .warning: "warning"
        case .critical: "critical"
        }
    }
}

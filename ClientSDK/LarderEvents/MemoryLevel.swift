/// The level of memory pressure.
public enum MemoryLevel: Int, Sendable, Hashable, Comparable, CaseIterable, CustomStringConvertible {
    /// Enough memory is available.
    case normal
    /// Memory is short: data that can be recreated should be released.
    case warning
    /// The process may be killed soon.
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

extension MemoryLevel: Encodable {
    /// Encodes the level's name.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

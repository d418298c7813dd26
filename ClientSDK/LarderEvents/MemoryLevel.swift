/// The level of memory pressure.
public enum MemoryLevel: String, Sendable, Comparable, CaseIterable, CustomStringConvertible, Encodable {
    /// Enough memory is available.
    case normal
    /// Memory is short: data that can be recreated should be released.
    case warning
    /// The process may be killed soon.
    case critical

    /// Orders levels from enough to too little.
    public static func < (left: Self, right: Self) -> Bool {
        left != right && (left == .normal || right == .critical)
    }

    /// The level's name.
    public var description: String { rawValue }
}

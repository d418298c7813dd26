/// What the network is good for.
public enum NetworkLevel: Int, Sendable, Hashable, Comparable, CaseIterable, CustomStringConvertible {
    /// No request can succeed.
    case offline
    /// Requests succeed slowly or not always.
    case constrained
    /// Nothing is known against it.
    case good

    /// Orders levels from worst to best.
    public static func < (left: NetworkLevel, right: NetworkLevel) -> Bool { left.rawValue < right.rawValue }

    /// The level's name.
    public var description: String {
        switch self {
        case .offline: "offline"
        case .constrained: "constrained"
        case .good: "good"
        }
    }
}

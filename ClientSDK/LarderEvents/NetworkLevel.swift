/// The usability of the network.
public enum NetworkLevel: Int, Sendable, Hashable, Comparable, CaseIterable, CustomStringConvertible {
    /// Requests cannot succeed.
    case offline
    /// Requests are slow or unreliable.
    case constrained
    /// No restriction is known.
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

extension NetworkLevel: Encodable {
    /// Encodes the level's name.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

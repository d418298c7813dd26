/// The usability of the network.
public enum NetworkLevel: String, Sendable, Comparable, CaseIterable, CustomStringConvertible, Encodable {
    /// Requests cannot succeed.
    case offline
    /// Requests are slow or unreliable.
    case constrained
    /// No restriction is known.
    case good

    /// Orders levels from worst to best.
    public static func < (left: Self, right: Self) -> Bool {
        left != right && (left == .offline || right == .good)
    }

    /// The level's name.
    public var description: String { rawValue }
}

/// The identity of an operation in an outbox.
public struct OperationID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The sequence number, in the order of enqueuing.
    public let rawValue: Int64

    init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// Creates an identifier from a stored number.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// The number.
    public var description: String { "\(rawValue)" }

    /// Orders by time of enqueuing.
    public static func < (left: OperationID, right: OperationID) -> Bool { left.rawValue < right.rawValue }
}

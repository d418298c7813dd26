/// Which operation, among all that were ever put into an outbox.
public struct OperationID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Its number, in the order in which operations were put in.
    public let rawValue: Int64

    init(_ rawValue: Int64) { self.rawValue = rawValue }

    /// An identifier that was kept as a number.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// The number.
    public var description: String { "\(rawValue)" }

    /// Orders by when they were put in.
    public static func < (left: OperationID, right: OperationID) -> Bool { left.rawValue < right.rawValue }
}

/// An operation on its way to the server.
public struct Attempt<Input: Sendable>: Sendable {
    /// Which operation.
    public let id: OperationID
    /// The same for every attempt, also after a restart: whoever has done it under this key does not do it again.
    public let idempotencyKey: String
    /// What is to be done.
    public let input: Input
    /// Which attempt it is; the first is 1.
    public let number: Int
    /// Whether an earlier attempt may have been carried out although nobody was told.
    public let isInDoubt: Bool
}

/// What came of an attempt.
public enum Outcome<Receipt: Sendable>: Sendable {
    /// The server has done it.
    ///
    /// - Parameter visibleAt: the version from which on each entity holds the change, where the receipt does not bring the entity
    ///   itself: until such a version is seen, the change goes on being shown over whatever a stale replica says.
    case accepted(Receipt, visibleAt: [EntityKey: Int64] = [:])
    /// The server will not do it, however often it is asked.
    case rejected(LarderError)
    /// Nothing has reached the server.
    case unsent(LarderError)
    /// The server has not decided, or nobody knows whether it was done: it is sent again under the same key, not before `after` and not
    /// before the error's `Retry-After`.
    case retry(LarderError, after: Duration? = nil)
}

extension Outcome {
    /// What an error means for an attempt that did not end otherwise: a refusal only where the server has decided. Everything else is asked
    /// about again under the same key.
    public static func failure(_ error: any Error) -> Outcome {
        let error = LarderError(error)
        switch OperationVerdict(error) {
        case .refused: return .rejected(error)
        case .unsent: return .unsent(error)
        case .undecided, .unknown: return .retry(error)
        }
    }
}

extension Outbox {
    /// One attempt to send an operation.
    public struct Attempt<Input: Sendable>: Sendable {
        /// Which operation.
        public let id: OperationID
        /// The idempotency key: the same for every attempt, also after a restart.
        public let idempotencyKey: String
        /// The input of the operation.
        public let input: Input
        /// The number of the attempt, from 1.
        public let number: Int
        /// Whether an earlier attempt may have been carried out.
        public let isInDoubt: Bool
    }
}

extension Outbox {
    /// The outcome of an attempt.
    public enum Outcome<Receipt: Sendable>: Sendable {
        /// The server has carried out the operation.
        case accepted(Receipt)
        /// The server has rejected the operation for good.
        case rejected(LarderError)
        /// Nothing of this attempt has reached the server. After an earlier attempt that may have been carried out, the outcome of the
        /// operation stays unknown.
        case unsent(LarderError)
        /// A transient failure or an unknown outcome: the operation is retried with the same idempotency key, not before the error's
        /// `Retry-After`.
        case retry(LarderError)
    }
}

extension Outbox.Outcome {
    /// The outcome for an error: `rejected` only if the server has decided. Everything else is retried under the same key.
    public static func failure(_ error: any Error) -> Self {
        let error = LarderError(error)
        switch Outbox.Verdict(error) {
        case .rejected: return .rejected(error)
        case .unsent: return .unsent(error)
        case .undecided, .unknown: return .retry(error)
        }
    }
}

/// A step of an operation of the outbox.
public enum OutboxStep: String, Sendable, Hashable, CaseIterable, Encodable, CodingKeyRepresentable {
    /// It was stored durably.
    case enqueued
    /// It was coalesced with an older one.
    case coalesced
    /// It was removed: by `Outbox.drop`, or together with an older one before they were sent.
    case cancelled
    /// It was sent.
    case sent
    /// The server has carried it out.
    case accepted
    /// The server has rejected it.
    case rejected
    /// The outcome is unknown.
    case inDoubt
}

/// Protocol variants in which real servers differ.
public struct Dialect: Sendable, Hashable {
    /// How a second request with the same idempotency key is answered.
    public enum Idempotency: String, Sendable, Hashable, CaseIterable {
        /// As the IETF draft: 409 while the first runs, then its result.
        case ietf
        /// As `ietf`, but a key that was used with another body is a 400 and not a 422.
        case stripeV1 = "stripe-v1"
        /// Only successes are replayed; failed work runs again.
        case stripeV2 = "stripe-v2"
        /// The second request waits for the first.
        case blocking
    }

    /// The instruction in the reply to an expired change token.
    public enum Resync: String, Sendable, Hashable, CaseIterable {
        /// Discard everything and read again.
        case wipe
        /// Read again, and keep an item that is missing there only if it is newer.
        case applyDifferences = "apply-differences"
        /// Read again, and upload what the server does not have.
        case uploadDifferences = "upload-differences"
    }

    /// How a second request with the same key is answered.
    public var idempotency = Idempotency.ietf
    /// The instruction for a resync.
    public var resync = Resync.wipe

    /// The variant that the OpenAPI description documents.
    public init() {}
}

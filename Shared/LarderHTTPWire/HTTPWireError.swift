/// A message that is not valid HTTP/1.1, is ambiguous, or exceeds a limit.
package struct HTTPWireError: Error, Sendable, Hashable {
    package enum Reason: Sendable, Hashable {
        case malformed
        case headTooLarge
        case targetTooLong
        case bodyTooLarge
        case unsupportedVersion
        case unsupportedTransferCoding
    }

    package let reason: Reason
    /// A sentence for the developer of the peer.
    package let detail: String

    package init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

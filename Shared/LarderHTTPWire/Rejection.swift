package import LarderHTTP

/// Why a message is rejected: it is not valid HTTP/1.1, is ambiguous, or exceeds a limit.
package struct Rejection: Error, Sendable, Hashable {
    /// That of the reply to a request. No two reasons of a server have one.
    package let status: Status
    /// A sentence for the developer of the peer.
    package let detail: String

    package init(_ status: Status, _ detail: String) {
        self.status = status
        self.detail = detail
    }
}

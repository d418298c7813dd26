/// A transport error as caches and outboxes see it.
package protocol RequestFailure: Error {
    /// The effect of the request.
    var kind: RequestFailureKind { get }
    /// How long the host has asked not to be sent requests; nil if it has not.
    var retryAfter: Duration? { get }
    /// Whether it was not sent because the server's certificate is not trusted or cannot be checked.
    var isUntrusted: Bool { get }
}

/// The effect of a request without a usable response.
package enum RequestFailureKind: Sendable, Hashable {
    /// The caller cancelled it.
    case cancelled
    /// The response did not arrive in time.
    case timedOut
    /// The request cannot be sent as it is. A part of its body may have been sent.
    case invalidRequest
    /// There was a response that cannot be used: it is too large, or has a content coding that was not offered.
    case unusable
    /// Nothing reached the server.
    case unsent
    /// There was no response, and the server may have received the request.
    case noReply
}

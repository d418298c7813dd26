import LarderEvents
package import LarderHTTP
import LarderTime

/// Redirects (RFC 9110 §15.4): the only code that follows them.
package enum Redirection {
    /// The maximum number of redirects for a request.
    package static let maximum = 16

    /// Sends a request and follows redirects if it wants that. `redirectedTo` of the response is the last URL.
    ///
    /// - Parameter hop: sends one request, whose `followsRedirects` is off. Timeouts apply to each hop.
    package static func follow<Reply: RedirectableReply>(
        _ request: TransportRequest,
        _ hop: (TransportRequest) async throws(TransportError) -> Reply
    ) async throws(TransportError) -> Reply {
        guard request.followsRedirects else { return try await hop(request) }
        var request = request
        request.followsRedirects = false
        for count in 0...maximum {
            var reply: Reply
            do throws(TransportError) {
                reply = try await hop(request)
            } catch {
                // The first server has received the request, so a failure of a later hop does not mean that it had no
                // effect.
                guard count > 0, error.kind == .unsent || error.kind == .invalidRequest else { throw error }
                throw TransportError(.interrupted, error.description, retryAfter: error.retryAfter, cause: error.cause)
            }
            guard let next = next(after: request, reply.status, reply.fields) else {
                if count > 0 { reply.redirectedTo = request.url }
                return reply
            }
            if let upload = next.upload, !upload.canBeSent {
                throw TransportError(
                    .bodyNotReplayable,
                    "The server redirects the request with \(reply.status.code), and its body can be read only once. Send it to "
                        + "'\(HTTPURL.redacted(next.url))' with a new body."
                )
            }
            request = next
        }
        throw TransportError(.interrupted, "The server redirects more than \(maximum) times.")
    }

    /// Returns the next request; nil if the response is not a redirect that may be followed.
    ///
    /// A redirect from https to http would send the request in clear text, and one with content to another origin may send a credential
    /// there, such as a refresh token. Neither is followed.
    package static func next(after request: TransportRequest, _ status: Status, _ fields: Fields) -> TransportRequest? {
        switch status.code {
        case 301, 302, 303, 307, 308: break
        default: return nil
        }
        guard let location = fields[.location], let from = HTTPURL(request.url), let to = from.resolve(location),
            to.userInfo == nil, to.scheme.isSecure || !from.scheme.isSecure
        else { return nil }
        var next = request
        next.url = to.text
        // After 302 POST becomes GET (§15.4.3), and after 303 every method (§15.4.4). After 301 it stays: a server that corrects a path or a
        // host has not carried the request out, and the reply to a GET would say that it has.
        let becomesGet = status.code == 303 ? request.method != .head : status.code == 302 && request.method == .post
        if becomesGet, request.method != .get {
            next.method = .get
            next.body = []
            next.upload = nil
            next.fields.removeAll { $0.canonical.hasPrefix("content-") }
        }
        guard to.origin != from.origin else { return next }
        guard !next.hasContent else { return nil }
        // Any other field may be a credential, such as an API key, and is not sent to another origin (§15.4).
        next.fields.removeAll { !isHarmless($0.canonical) }
        return next
    }

    /// Whether a field is sent to another origin: those of content negotiation, conditions, ranges and caching.
    private static func isHarmless(_ name: String) -> Bool {
        ["accept", "content-", "if-"].contains { name.hasPrefix($0) }
            || ["range", "cache-control", "pragma", "user-agent", "last-event-id"].contains(name)
    }
}

/// A response that may be a redirect.
package protocol RedirectableReply: Sendable {
    var status: Status { get }
    var fields: Fields { get }
    /// The URL of the response if it differs from the request's.
    var redirectedTo: String? { get set }
}

extension TransportStream: RedirectableReply {}
extension TransportResponse: RedirectableReply {}

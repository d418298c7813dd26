package import LarderHTTP

/// Following redirections (RFC 9110 §15.4).
package enum Redirection {
    /// How many are followed for one request.
    package static let maximum = 16

    /// Sends a request, and what it is redirected to. The reply says from where it came.
    ///
    /// - Parameter hop: sends one request. A timeout is for each of them.
    package static func follow<Reply: RedirectableReply>(
        _ request: TransportRequest,
        _ hop: (TransportRequest) async throws(TransportError) -> Reply
    ) async throws(TransportError) -> Reply {
        var request = request
        for count in 0...maximum {
            var reply: Reply
            do throws(TransportError) {
                reply = try await hop(request)
            } catch {
                // A server has seen the request by now, whatever becomes of it at the next, which may be an address that cannot be
                // reached or used.
                let isSeen = count > 0 && (error.code == .unreachable || error.code == .invalidURL)
                throw isSeen ? TransportError(.interrupted, error.description) : error
            }
            guard let next = next(after: request, reply.status, reply.fields) else {
                if count > 0 { reply.redirectedTo = request.url }
                return reply
            }
            request = next
        }
        throw TransportError(.interrupted, "The server redirects in a circle: more than \(maximum) times.")
    }

    /// The request that a reply leads to; nil where it leads nowhere, and is what the caller gets.
    package static func next(after request: TransportRequest, _ status: Status, _ fields: Fields) -> TransportRequest? {
        switch status.code {
        case 301, 302, 303, 307, 308: break
        default: return nil
        }
        guard let location = fields[.location], let from = CacheURL(request.url), let to = from.resolve(location),
            !to.origin.contains("@")
        else { return nil }
        var next = request
        next.url = to.text
        // What everybody does with a POST (§15.4.2, §15.4.3), and what 303 asks for of everything else (§15.4.4).
        let becomesGet = status.code == 303 ? request.method != .head : status.code < 303 && request.method == .post
        if becomesGet, request.method != .get {
            next.method = .get
            next.body = []
            next.fields.removeAll { $0.canonical.hasPrefix("content-") }
        }
        // Who asks is nobody else's business (§15.4).
        if to.origin != from.origin { next.fields.removeAll { credentials.contains($0.canonical) } }
        return next
    }

    private static let credentials: Set<String> = ["authorization", "cookie", "proxy-authorization"]
}

/// What tells whether a reply leads elsewhere.
package protocol RedirectableReply: Sendable {
    var status: Status { get }
    var fields: Fields { get }
    /// The URL that answered, where it is another than the request's.
    var redirectedTo: String? { get set }
}

extension TransportStream: RedirectableReply {}
extension TransportResponse: RedirectableReply {}

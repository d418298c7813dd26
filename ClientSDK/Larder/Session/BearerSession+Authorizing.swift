import LarderEvents
import LarderHTTP
public import LarderResources
import LarderStorage
import LarderTime
public import LarderTransport
import Synchronization

extension BearerSession {
    /// Adds the access token to a request, and renews it before if it has expired.
    ///
    /// - Throws: `.unauthorized` for a write after the session has ended: the server would reject it again. A read is sent, because its
    ///   resource may be public. `.closed` for a write after `APIClient.signOut`. For a stored change as `requireUser`.
    public func authorize(_ request: inout TransportRequest) async throws(LarderError) {
        let (known, hasEnded) = current.withLock { ($0.tokens, $0.hasEnded) }
        guard var tokens = known else {
            guard !request.method.isSafe else { return }
            if hasEnded { throw Self.closed }
            if RequestReason.current?.isOfStoredChange ?? false { try await requireUser() }
            return
        }
        if tokens.isExpired, !request.method.isSafe {
            // Another process may have signed in.
            guard try await adoptStored(inPlaceOf: tokens), let new = current.withLock({ $0.tokens }), !new.isExpired
            else {
                throw LarderError(
                    .unauthorized,
                    "The session has ended; \(HTTPURL.redacted(request.url)) was not requested. Sign in again."
                )
            }
            tokens = new
        }
        var access = tokens.access
        // The local clock is only a hint; the server decides.
        if !tokens.isExpired, clock.now.nanosecondsSinceEpoch >= tokens.expiresAt, !tokens.refresh.isEmpty {
            try await renewed(tokens)
            guard let renewed = current.withLock({ $0.tokens }) else { return try await authorize(&request) }
            access = renewed.access
        }
        request.fields.set(.authorization, "Bearer \(access)")
    }

    /// Checks that a stored change may be sent.
    ///
    /// - Throws: `.unauthorized` after a sign-out that has kept the user's content: the server would reject the change, or carry it out without
    ///   a user. `.storage`.
    func requireUser() async throws(LarderError) {
        guard current.withLock({ $0.tokens == nil && !$0.hasEnded }) else { return }
        let owner = try await cache.core.changing { () async throws(LarderError) -> Owner? in try self.owner() }
        guard owner != nil else { return }
        throw LarderError(
            .unauthorized,
            "The user of the account has signed out. The change waits for the next sign-in."
        )
    }

    /// Renews the tokens, unless they were renewed after the request was authorized, here or in another process.
    public func renew(after request: TransportRequest) async throws(LarderError) -> Bool {
        guard let tokens = current.withLock({ $0.tokens }) else { return false }
        guard request.fields[.authorization] == "Bearer \(tokens.access)" else { return !tokens.isExpired }
        // Neither an expired session nor a token without refresh token can be renewed, but another process may have signed in.
        guard !tokens.refresh.isEmpty, !tokens.isExpired else {
            guard try await adoptStored(inPlaceOf: tokens) else { return false }
            return current.withLock { $0.tokens.map { !$0.isExpired } ?? false }
        }
        try await renewed(tokens)
        return true
    }

    /// A valid access token, for protocols without header fields; nil if no user is signed in.
    public func accessToken() async throws(LarderError) -> String? {
        var request = TransportRequest(url: "")
        try await authorize(&request)
        return request.fields[.authorization].map { String($0.dropFirst("Bearer ".count)) }
    }
}

public import LarderResources

extension BearerSession {
    /// The tokens of a sign-in or a renewal (RFC 6749 section 5.1).
    public struct Grant: Sendable {
        /// The token that authorizes requests.
        public var accessToken: String
        /// The token that is exchanged for the next grant; nil: that of a renewal is kept, and a sign-in without one cannot be renewed.
        public var refreshToken: String?
        /// Who has signed in. A renewal may leave it nil: the user stays the same.
        public var userID: String?
        /// How long the access token is valid, counted from the request for it.
        public var lifetime: Duration

        /// A grant with the given tokens.
        public init(accessToken: String, refreshToken: String? = nil, userID: String? = nil, lifetime: Duration) {
            self.accessToken = accessToken
            self.refreshToken = refreshToken
            self.userID = userID
            self.lifetime = lifetime
        }
    }

    /// The endpoints by which a backend renews and revokes tokens.
    public struct Endpoints: Sendable {
        /// Exchanges a refresh token for a new grant.
        public var renew: @Sendable (HTTPSource, _ refreshToken: String) async throws(LarderError) -> Grant
        /// Whether a failed renewal ends the session, because the server itself has rejected the refresh token.
        public var endsSession: @Sendable (LarderError) -> Bool
        /// Revokes the tokens at the server. An error is reported and does not stop a sign-out, because the tokens expire.
        public var revoke: @Sendable (HTTPSource, _ accessToken: String) async throws(LarderError) -> Void

        /// Endpoints with the given requests.
        public init(
            renew: @escaping @Sendable (HTTPSource, _ refreshToken: String) async throws(LarderError) -> Grant,
            endsSession: @escaping @Sendable (LarderError) -> Bool,
            revoke: @escaping @Sendable (HTTPSource, _ accessToken: String) async throws(LarderError) -> Void = {
                _,
                _ in
            }
        ) {
            self.renew = renew
            self.endsSession = endsSession
            self.revoke = revoke
        }

        /// Endpoints without renewal: for a backend without sessions, and for personal access tokens.
        public static let none = Endpoints(
            renew: { _, _ throws(LarderError) in
                throw LarderError(.unauthorized, "The tokens of this backend cannot be renewed. Sign in again.")
            },
            endsSession: { $0.code == .unauthorized }
        )
    }
}

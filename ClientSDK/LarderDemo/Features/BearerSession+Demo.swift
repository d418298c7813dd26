public import Larder
public import LarderModels

extension BearerSession {
    private struct Credentials: Encodable, Sendable {
        var handle: String
        var password: String
    }

    /// Signs in at the demo backend.
    ///
    /// - Returns: the profile of the user.
    /// - Throws: `.rejected` if the handle or the password is wrong; `.invalidArgument` if the account belongs to another user; `.offline`;
    ///   `.storage`.
    @discardableResult
    public func signIn(handle: String, password: String) async throws(LarderError) -> Profile {
        var profile: Profile?
        try await signIn { source throws(LarderError) in
            let credentials = Credentials(handle: handle, password: password)
            let grant = try await source.send(.post, "/v1/sessions", credentials, as: SessionGrant.self).value
            profile = grant.user
            return grant.session
        }
        guard let profile else { throw LarderError(.unexpectedReply, "The reply to the sign-in contains no session.") }
        return profile
    }
}

extension BearerSession.Endpoints {
    /// The session endpoints of the demo backend. Only its problem type `invalid-refresh-token` ends a session.
    public static let demo = BearerSession.Endpoints(
        renew: { source, token throws(LarderError) in
            try await source.send(.post, "/v1/sessions/refresh", ["refreshToken": token], as: SessionGrant.self).value
                .session
        },
        endsSession: { $0.problem?.split(separator: "/").last == "invalid-refresh-token" },
        revoke: { source, token throws(LarderError) in
            var request = TransportRequest(method: .delete, url: source.url("/v1/sessions/current"))
            request.fields.set(.authorization, "Bearer \(token)")
            do { _ = try await source.transport.send(request) } catch { throw LarderError(error) }
        }
    )
}

extension SessionGrant {
    fileprivate var session: BearerSession.Grant {
        BearerSession.Grant(
            accessToken: accessToken,
            refreshToken: refreshToken,
            userID: user.id,
            lifetime: .seconds(expiresIn)
        )
    }
}

/// The reply to a sign-in or a token refresh.
public struct SessionGrant: Codable, Sendable, Hashable {
    /// The bearer token of requests.
    public var accessToken: String
    /// The lifetime of the access token in seconds.
    public var expiresIn: Int64
    /// The token for the next refresh.
    public var refreshToken: String
    /// The profile of the signed-in user.
    public var user: Profile
}

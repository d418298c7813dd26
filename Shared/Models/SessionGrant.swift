/// What a sign-in or a refresh gives.
public struct SessionGrant: Codable, Sendable, Hashable {
    /// What requests carry.
    public var accessToken: String
    /// For how many seconds it is good.
    public var expiresIn: Int64
    /// What gives the next one.
    public var refreshToken: String
    /// Who signed in.
    public var user: Profile
}

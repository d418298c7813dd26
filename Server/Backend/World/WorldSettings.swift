/// The numbers by which a world lives.
package struct WorldSettings: Sendable, Hashable {
    /// How long an access token is good for.
    package var accessTokenLifetime: Duration = .seconds(3600)
    /// How long a refresh token is good for.
    package var refreshTokenLifetime: Duration = .seconds(30 * 86_400)
    /// How long after its first exchange a refresh token may be exchanged again (RFC 9700 §4.14).
    package var refreshTokenGrace: Duration = .seconds(30)
    /// How long the change feed remembers deletions; a token older than a forgotten one leads to a resync.
    package var tombstoneRetention: Duration = .seconds(7 * 86_400)
    /// What every fixture user's password is.
    package var password = "larder"
    /// The most that cached replies may hold, in bytes; 0 builds every reply anew.
    package var responseCacheBytesMaximum = 16 << 20
    /// Requests that one caller may make in `rateWindow`; nil for no limit.
    package var rateLimit: Int?
    /// The window of the rate limit.
    package var rateWindow: Duration = .seconds(60)

    /// How long a live channel may be silent, by the world's clock.
    package var heartbeat: Duration = .seconds(30)
    /// How many exchanges and frames the journal keeps; 0 keeps none.
    package var journalCapacity = 4_096

    package init() {}
}

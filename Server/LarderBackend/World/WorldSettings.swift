/// The limits and lifetimes of a world.
package struct WorldSettings: Sendable, Hashable {
    package var accessTokenLifetime: Duration = .seconds(3600)
    package var refreshTokenLifetime: Duration = .seconds(30 * 86_400)
    /// How long after its first exchange a refresh token may be exchanged again (RFC 9700 §4.14).
    package var refreshTokenGrace: Duration = .seconds(30)
    /// How long the change feed keeps tombstones; a token older than a removed one leads to a resync.
    package var tombstoneRetention: Duration = .seconds(7 * 86_400)
    /// The password of every fixture user.
    package var password = "larder"
    /// The size of the response cache in bytes; 0 disables it.
    package var responseCacheBytesMaximum = 16 << 20
    /// The number of requests of one caller per `rateWindow`; nil for no limit.
    package var rateLimit: Int?
    package var rateWindow: Duration = .seconds(60)

    /// The interval of heartbeats on live channels, in the world's time.
    package var heartbeat: Duration = .seconds(30)
    package init() {}
}

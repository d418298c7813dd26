public import LarderTime

/// Any value under a key, with the time at which it was recorded: what generic cached requests are kept as.
public struct DiskRecord: Sendable, Hashable {
    /// What it is called.
    public var key: String
    /// The bytes of its value, as the caller encoded them.
    public var payload: [UInt8]
    /// When it was recorded.
    public var recordedAt: WallTime
    /// When it is outdated. It is removed some time after that.
    public var expiresAt: WallTime

    /// A record to be stored.
    public init(_ key: String, payload: [UInt8], recordedAt: WallTime, expiresAt: WallTime) {
        self.key = key
        self.payload = payload
        self.recordedAt = recordedAt
        self.expiresAt = expiresAt
    }
}

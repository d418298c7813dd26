public import LarderTime

/// A stored record: any value under a key with its time, as used by cached requests.
public struct DiskRecord: Sendable, Hashable {
    public var key: String
    /// The encoded value.
    public var payload: [UInt8]
    /// When it was recorded.
    public var recordedAt: WallTime
    /// When it becomes outdated. It is removed some time later.
    public var expiresAt: WallTime

    /// Creates a record.
    public init(_ key: String, payload: [UInt8], recordedAt: WallTime, expiresAt: WallTime) {
        self.key = key
        self.payload = payload
        self.recordedAt = recordedAt
        self.expiresAt = expiresAt
    }
}

public import LarderTime

/// A stored record: any value under a key with its time. In the store it is an entity without a type.
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

extension DiskConnection {
    /// A record, however outdated.
    package func record(_ key: String) throws(DiskError) -> DiskRecord? {
        try entity(EntityKey(type: "", id: key)).map { row in
            DiskRecord(key, payload: row.payload, recordedAt: row.fetchedAt, expiresAt: row.expiresAt)
        }
    }

    /// Stores a record, replacing the one under its key.
    package func put(_ record: DiskRecord) throws(DiskError) {
        let times = RowTimes(fetchedAt: record.recordedAt, expiresAt: record.expiresAt)
        _ = try put(DiskEntity(EntityKey(type: "", id: record.key), payload: record.payload, times))
    }
}

extension DiskStore {
    /// A record, however outdated.
    public func record(_ key: String) throws(DiskError) -> DiskRecord? { try readOnce { try $0.record(key) } }

    /// Stores a record, replacing the one under its key.
    public func put(_ record: DiskRecord) throws(DiskError) { try writeOnce { try $0.put(record) } }
}

public import LarderTime

/// Where the answers of `LarderCache.request` are recorded if not in the cache's own store.
///
/// Called outside of all locks, from any thread. An error is reported as `CacheEvent.storageFailed`, and the request goes on without the
/// record.
public protocol RequestStorage: Sendable {
    /// The answer under a key, expired or not; nil if there is none.
    func answer(for key: String) throws -> RecordedAnswer?
    /// Records an answer in place of the earlier one.
    func store(_ answer: RecordedAnswer, for key: String) throws
}

/// An answer as it is recorded.
public struct RecordedAnswer: Sendable, Hashable {
    /// The encoded value.
    public var payload: [UInt8]
    /// When the function that returned it was called.
    public var recordedAt: WallTime

    /// Creates an answer to be recorded.
    public init(payload: [UInt8], recordedAt: WallTime) {
        self.payload = payload
        self.recordedAt = recordedAt
    }
}

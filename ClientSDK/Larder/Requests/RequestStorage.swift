public import LarderTime

/// A recorded answer: its bytes, when it was recorded, and when it is outdated.
public struct RecordedAnswer: Sendable, Hashable {
    /// The bytes of the value, as the request's codec made them.
    public var payload: [UInt8]
    /// When it was recorded.
    public var recordedAt: WallTime
    /// When it is outdated.
    public var outdatedAt: WallTime

    /// A recorded answer.
    public init(payload: [UInt8], recordedAt: WallTime, outdatedAt: WallTime) {
        self.payload = payload
        self.recordedAt = recordedAt
        self.outdatedAt = outdatedAt
    }
}

/// Where answers are recorded. Conform a type to keep them wherever you like; it is called from any thread, and a call may wait
/// for a disk, and for nothing else.
public protocol RequestStorage: Sendable {
    /// The answer under a key, however outdated; nil where there is none, and where what is there cannot be read any more.
    func answer(for key: String) throws -> RecordedAnswer?

    /// Records an answer under a key, in place of what is there.
    func store(_ answer: RecordedAnswer, for key: String) throws

    /// Removes what is under a key.
    func remove(_ key: String) throws

    /// Removes what was outdated at a time; how many that were.
    func removeOutdated(at now: WallTime) throws -> Int

    /// Removes everything.
    func removeAll() throws
}

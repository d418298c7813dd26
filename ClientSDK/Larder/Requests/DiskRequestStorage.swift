public import LarderTime

/// Answers as generic records of a `DiskStore`, within its budget. Safe from any thread.
public final class DiskRequestStorage: RequestStorage {
    private let store: DiskStore

    /// Keeps answers in a store, beside whatever else is there.
    public init(_ store: DiskStore) { self.store = store }

    /// The answer under a key.
    public func answer(for key: String) throws -> RecordedAnswer? {
        try store.record(Self.name(key)).map {
            RecordedAnswer(payload: $0.payload, recordedAt: $0.recordedAt, outdatedAt: $0.expiresAt)
        }
    }

    /// Records an answer.
    public func store(_ answer: RecordedAnswer, for key: String) throws {
        try store.put(
            DiskRecord(
                Self.name(key),
                payload: answer.payload,
                recordedAt: answer.recordedAt,
                expiresAt: answer.outdatedAt
            )
        )
    }

    /// Removes what is under a key.
    public func remove(_ key: String) throws { try store.removeRecord(Self.name(key)) }

    /// Removes what is outdated, by the store's own maintenance and clock: all kinds of things, step by step until it is done.
    public func removeOutdated(at now: WallTime) throws -> Int {
        var removed = 0
        while true {
            let report = try store.maintain()
            removed += report.expired
            if report.expired == 0 { return removed }
        }
    }

    /// Removes all answers, and nothing else.
    public func removeAll() throws {
        try store.write { transaction in
            for key in try transaction.read({ reading in try reading.recordKeys(startingWith: Self.prefix) }) {
                try transaction.removeRecord(key)
            }
        }
    }

    private static let prefix = "request "

    private static func name(_ key: String) -> String { prefix + key }
}

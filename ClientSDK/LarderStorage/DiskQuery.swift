public import LarderTime

/// A stored list: the keys of its entities in order, and its metadata.
public struct DiskQuery: Sendable, Hashable {
    public var key: QueryKey
    /// The entities in order. They need not be stored.
    public var ids: [EntityKey]
    /// The cursor of the next page, if any.
    public var nextCursor: String?
    /// The cursor of the previous page, if any.
    public var previousCursor: String?
    /// Whether the list is complete. Never inferred from an empty list.
    public var isComplete: Bool
    /// The entity tag of its response.
    public var entityTag: String?
    /// When the list was received.
    public var fetchedAt: WallTime
    /// When it was last confirmed to be current.
    public var validatedAt: WallTime
    /// When it becomes stale.
    public var expiresAt: WallTime
    /// What the source has said about its freshness.
    public var terms: DiskEntity.Terms
    /// Further data of the list's owner, such as gaps. Opaque to the store.
    public var details: [UInt8]
    /// Whether it was marked as stale since it was stored or validated.
    public var isInvalidated = false
    /// Whether the clock was set back since: its times are uncertain.
    public package(set) var isClockUncertain = false

    /// Creates a list.
    public init(
        _ key: QueryKey,
        ids: [EntityKey],
        nextCursor: String? = nil,
        previousCursor: String? = nil,
        isComplete: Bool,
        entityTag: String? = nil,
        fetchedAt: WallTime,
        validatedAt: WallTime? = nil,
        expiresAt: WallTime,
        terms: DiskEntity.Terms = [],
        details: [UInt8] = []
    ) {
        self.key = key
        self.ids = ids
        self.nextCursor = nextCursor
        self.previousCursor = previousCursor
        self.isComplete = isComplete
        self.entityTag = entityTag
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt ?? fetchedAt
        self.expiresAt = expiresAt
        self.terms = terms
        self.details = details
    }
}

extension DiskStore {
    /// A list with its entities in one snapshot.
    public struct List: Sendable, Hashable {
        /// The list.
        public let query: DiskQuery
        /// The entity for each key, in the list's order; nil if it is not stored.
        public let entities: [DiskEntity?]
    }
}

extension DiskQuery {
    /// The part of the list that is stored as bytes: cursors and details.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        for cursor in [nextCursor, previousCursor] {
            guard let cursor else {
                bytes.append(0)
                continue
            }
            bytes.append(1)
            let count = UInt32(cursor.utf8.count)
            for shift in stride(from: UInt32(0), to: 32, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: count >> shift))
            }
            bytes += Array(cursor.utf8)
        }
        return bytes + details
    }

    /// Decodes cursors and details; false if they are invalid.
    mutating func decode(_ bytes: [UInt8]) -> Bool {
        var index = 0
        func cursor() -> (isValid: Bool, text: String?) {
            guard index < bytes.count else { return (false, nil) }
            index += 1
            guard bytes[index - 1] == 1 else { return (bytes[index - 1] == 0, nil) }
            guard index + 4 <= bytes.count else { return (false, nil) }
            let count = (0..<4).reduce(0) { $0 | Int(bytes[index + $1]) << (8 * $1) }
            index += 4
            guard count <= bytes.count - index else { return (false, nil) }
            index += count
            return (true, String(decoding: bytes[(index - count)..<index], as: UTF8.self))
        }
        let next = cursor()
        let previous = cursor()
        guard next.isValid, previous.isValid else { return false }
        nextCursor = next.text
        previousCursor = previous.text
        details = Array(bytes[index...])
        return true
    }
}

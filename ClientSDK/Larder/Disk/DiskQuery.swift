public import LarderTime

/// The result of a query as the disk tier keeps it: which entities, in which order, and what is known of the list.
public struct DiskQuery: Sendable, Hashable {
    /// What it is called.
    public var key: QueryKey
    /// The entities in order. None of them need be stored.
    public var ids: [EntityKey]
    /// Where the page after these begins, if there is one.
    public var nextCursor: String?
    /// Where the page before these begins, if there is one.
    public var previousCursor: String?
    /// Whether the list has no more than this. Never inferred from a list being empty.
    public var isComplete: Bool
    /// The validator of the reply that it came in.
    public var entityTag: String?
    /// When the list came from the server.
    public var fetchedAt: WallTime
    /// When the server last said that it is current.
    public var validatedAt: WallTime
    /// When it stops being fresh.
    public var expiresAt: WallTime
    /// Whatever else the reader of the list must know, such as its gaps. The store does not look into it.
    public var details: [UInt8]
    /// Whether it was declared stale since it was stored or validated.
    public var isInvalidated = false
    /// Whether the clock was found to have been set back since: its times say nothing any more.
    public internal(set) var isClockUncertain = false

    /// A list to be stored.
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
        self.details = details
    }
}

/// A list with the entities that it names, all of one moment.
public struct DiskList: Sendable, Hashable {
    /// The list.
    public let query: DiskQuery
    /// The entity for each identifier, in the list's order; nil for one that is not stored (any more).
    public let entities: [DiskEntity?]
}

extension DiskQuery {
    /// What of the list is stored as bytes: cursors and details.
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

    /// Takes cursors and details from stored bytes; false where they are not what `encoded` gives.
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

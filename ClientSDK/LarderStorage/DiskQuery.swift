package import LarderTime

/// A stored list: the keys of its entities in order, and its metadata.
package struct DiskQuery: Sendable, Hashable {
    package var key: QueryKey
    /// The entities in order. They need not be stored. What the owner has noted beside one that stays is kept. Reading and setting cost
    /// O(n).
    package var ids: [EntityKey] {
        get { members.keys }
        set {
            let (marks, notes) = (members.marks, members.notes)
            members.replace(with: newValue.map { ListMembers.Entry($0, mark: marks[$0], note: notes[$0]) })
        }
    }
    /// The entities with their marks.
    package var members: ListMembers
    /// What is on disk, to find the rows that differ.
    package var stored = KnownRows()
    /// The cursor of the next page, if any.
    package var nextCursor: String?
    /// Whether the list is complete. Never inferred from an empty list.
    package var isComplete: Bool
    /// The entity tag of its response.
    package var entityTag: String?
    /// When the list was received.
    package var fetchedAt: WallTime
    /// When it was last confirmed to be current.
    package var validatedAt: WallTime
    /// When it becomes stale.
    package var expiresAt: WallTime
    /// What the source has said about its freshness.
    package var terms: DiskEntity.Terms
    /// Further data of the list's owner, such as gaps. Opaque to the store.
    package var details: [UInt8]
    /// When the request or the event that has brought or confirmed it began.
    package var asked = Stamp.never
    /// When it was last invalidated.
    package var invalid = Stamp.never
    /// When the commit that has stored the latest reply began: the entities of that reply have not changed since the list was asked for.
    package var answered = Stamp.never
    /// The edits of a list that replaces are applied to the replies of earlier requests.
    package var edits = ListEdits()
    /// Whether it was marked as stale since it was stored or validated.
    package var isInvalidated: Bool {
        get { invalid > asked }
        set { invalid = newValue ? max(invalid, asked.successor) : min(invalid, asked) }
    }
    /// Whether the clock was set back since: its times are uncertain.
    package var isClockUncertain = false

    /// Creates a list.
    package init(
        _ key: QueryKey,
        ids: [EntityKey],
        nextCursor: String? = nil,
        isComplete: Bool,
        entityTag: String? = nil,
        fetchedAt: WallTime,
        validatedAt: WallTime? = nil,
        expiresAt: WallTime,
        terms: DiskEntity.Terms = [],
        details: [UInt8] = []
    ) {
        self.key = key
        members = ListMembers(ids)
        self.nextCursor = nextCursor
        self.isComplete = isComplete
        self.entityTag = entityTag
        self.fetchedAt = fetchedAt
        self.validatedAt = validatedAt ?? fetchedAt
        self.expiresAt = expiresAt
        self.terms = terms
        self.details = details
    }
}

extension DiskQuery {
    /// The stored rows of a list, as far as they are known. All values are equal: they say nothing about the content of the list.
    package struct KnownRows: Sendable, Hashable {
        /// The checksum of the list's item, which covers its members: if the item still has it, they are the same.
        var sum: Int64 = 0
        /// Nil if they are not known.
        var rows: [ListRow]?

        package static func == (left: KnownRows, right: KnownRows) -> Bool { true }

        package func hash(into hasher: inout Hasher) {}
    }
}

extension DiskStore {
    /// A list with its entities in one snapshot.
    package struct List: Sendable, Hashable {
        /// The list.
        package let query: DiskQuery
        /// The entity for each key, in the list's order; nil if it is not stored.
        package let entities: [DiskEntity?]
    }
}

extension DiskQuery {
    /// The part of the list that is stored as bytes: which of the cursor and the edits there are, these with their lengths, and the
    /// details.
    var encoded: [UInt8] {
        var bytes: [UInt8] = [(nextCursor == nil ? 0 : 1) | (edits.isEmpty ? 0 : 2)]
        if let nextCursor { bytes.append(part: nextCursor.utf8) }
        if !edits.isEmpty { bytes.append(part: edits.encoded) }
        return bytes + details
    }

    /// Decodes the cursor, the edits and the details; false if they are invalid.
    mutating func decode(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        guard let first = rest.popFirst(), first < 4 else { return false }
        if first & 1 != 0 {
            guard let cursor = rest.takeText() else { return false }
            nextCursor = cursor
        }
        if first & 2 != 0 {
            guard let known = rest.takePart().flatMap({ ListEdits(encoded: $0) }) else { return false }
            edits = known
        }
        details = Array(rest)
        return true
    }
}

import LarderCoding

/// A stored list: the keys of its entities in order, and its metadata.
@dynamicMemberLookup
package struct DiskQuery: Sendable, Hashable {
    package var key: QueryKey
    /// The entities in order. They need not be stored. What the owner has noted beside one that stays is kept. Reading and setting cost
    /// O(n).
    package var ids: [EntityKey] {
        get { members.keys }
        set { members.setKeys(newValue) }
    }
    /// The entities with their marks.
    package var members: ListMembers
    /// What is on disk, to find the rows that differ.
    package var stored = KnownRows()
    /// Whether the list is complete. Never inferred from an empty list.
    package var isComplete: Bool
    /// The entity tag of its response.
    package var entityTag: String?
    package var times: RowTimes
    /// Further data of the list's owner, such as gaps. Opaque to the store.
    package var details: [UInt8] = []
    /// When the request or the event that has brought or confirmed it began.
    package var asked = Stamp.never
    /// When it was last invalidated.
    package var invalid = Stamp.never
    /// When the commit that has stored the latest reply began, of a timeline the latest that has changed it: entities that have changed later
    /// did not come with it.
    package var answered = Stamp.never
    /// The edits of a list that replaces are applied to the replies of earlier requests.
    package var edits = ListEdits()
    /// Whether it was marked as stale since it was stored or validated.
    package var isInvalidated: Bool {
        get { invalid > asked }
        set { invalid = newValue ? max(invalid, asked.successor) : min(invalid, asked) }
    }

    package init(
        _ key: QueryKey,
        _ members: ListMembers = ListMembers(),
        isComplete: Bool = false,
        entityTag: String? = nil,
        times: RowTimes
    ) {
        (self.key, self.members, self.times) = (key, members, times)
        (self.isComplete, self.entityTag) = (isComplete, entityTag)
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<RowTimes, Value>) -> Value {
        get { times[keyPath: path] }
        set { times[keyPath: path] = newValue }
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
        package let query: DiskQuery
        /// The entity for each key, in the list's order; nil if it is not stored.
        package let entities: [DiskEntity?]
    }
}

extension DiskQuery {
    /// The part of the list that is stored as bytes: the edits with their length, and the details.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(part: edits.isEmpty ? [] : edits.encoded)
        return bytes + details
    }

    /// Decodes the edits and the details; false if they are invalid.
    mutating func decode(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        guard let part = rest.takePart(), let known = part.isEmpty ? ListEdits() : ListEdits(encoded: part) else {
            return false
        }
        (edits, details) = (known, Array(rest))
        return true
    }
}

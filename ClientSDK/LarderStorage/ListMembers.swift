/// The members of a list in order. The costs of changes and of searches are O(n), some nanoseconds for each member.
package struct ListMembers: Sendable, Hashable {
    /// A member, and what the list's owner notes beside it.
    package struct Entry: Sendable, Hashable {
        package let key: EntityKey
        package var mark: Int64?
        package var note: String?

        package init(_ key: EntityKey, mark: Int64? = nil, note: String? = nil) {
            self.key = key
            self.mark = mark
            self.note = note
        }
    }

    package private(set) var entries: [Entry]

    /// Creates a list of members without marks.
    package init(_ keys: some Sequence<EntityKey>) { entries = keys.map { Entry($0) } }

    package init(entries: [Entry] = []) { self.entries = entries }

    package var isEmpty: Bool { entries.isEmpty }

    package var count: Int { entries.count }

    package var keys: [EntityKey] { entries.map(\.key) }

    /// The number of members with a mark.
    package var markedCount: Int { entries.count { $0.mark != nil } }

    /// The number of members with a note.
    package var notedCount: Int { entries.count { $0.note != nil } }

    package var marks: [EntityKey: Int64] {
        entries.reduce(into: [:]) { marks, entry in if let mark = entry.mark { marks[entry.key] = mark } }
    }

    package var notes: [EntityKey: String] {
        entries.reduce(into: [:]) { notes, entry in if let note = entry.note { notes[entry.key] = note } }
    }

    /// Whether a key is a member.
    package func contains(_ key: EntityKey) -> Bool { index(of: key) != nil }

    /// The mark of a member.
    package func mark(of key: EntityKey) -> Int64? { index(of: key).flatMap { entries[$0].mark } }

    private func index(of key: EntityKey) -> Int? { entries.firstIndex { $0.key == key } }

    /// Inserts a member before the one at an offset.
    package mutating func insert(_ entry: Entry, at offset: Int) { entries.insert(entry, at: offset) }

    /// Removes a key, wherever it is in the list.
    package mutating func remove(_ key: EntityKey) { entries.removeAll { $0.key == key } }

    /// Changes the mark of a member, if it is there.
    package mutating func setMark(_ mark: Int64?, of key: EntityKey) {
        if let index = index(of: key) { entries[index].mark = mark }
    }

    package mutating func replace(with new: [Entry]) { entries = new }
}

extension BidirectionalCollection {
    /// The numbers of elements at the beginning and at the end that another collection has too.
    func common<Other: BidirectionalCollection>(
        with other: Other,
        by areEqual: (Element, Other.Element) -> Bool
    ) -> (begin: Int, end: Int) {
        let begin = zip(self, other).prefix(while: areEqual).count
        let end = zip(reversed(), other.reversed()).prefix(Swift.min(count, other.count) - begin).prefix(
            while: areEqual
        ).count
        return (begin, end)
    }
}

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

    package var notedCount: Int { entries.count { $0.note != nil } }

    package func contains(_ key: EntityKey) -> Bool { index(of: key) != nil }

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

    /// Replaces the keys. What is noted beside one that stays is kept.
    ///
    /// - Parameter mark: the mark of new ones.
    package mutating func setKeys(_ new: [EntityKey], markingNew mark: Int64? = nil) {
        let (begin, end) = entries.common(with: new) { $0.key == $1 }
        let replaced = begin..<(count - end)
        let known = Dictionary(entries[replaced].map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
        entries.replaceSubrange(
            replaced,
            with: new[begin..<(new.count - end)].map { known[$0] ?? Entry($0, mark: mark) }
        )
    }
}

extension Array {
    /// The numbers of elements at the beginning and at the end that another array has too.
    func common<Other>(with other: [Other], by areEqual: (Element, Other) -> Bool) -> (begin: Int, end: Int) {
        let maximum = Swift.min(count, other.count)
        var (begin, end) = (0, 0)
        while begin < maximum, areEqual(self[begin], other[begin]) { begin += 1 }
        while begin + end < maximum, areEqual(self[count - 1 - end], other[other.count - 1 - end]) { end += 1 }
        return (begin, end)
    }
}

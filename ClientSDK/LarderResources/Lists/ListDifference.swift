import LarderStorage

/// The edits that turn one list into another, with items matched by identifier, for views that move rows.
///
/// Cost: O(n log n) for lists of n items.
public struct ListDifference<ID: Hashable & Sendable>: Sendable, Hashable {
    /// An inserted or removed item and its index.
    public struct Place: Sendable, Hashable {
        /// The item's identifier.
        public let id: ID
        /// Its index: in the old list for a removal, in the new one for an insertion or an update.
        public let index: Int
    }

    /// An item that is in both lists at another position.
    public struct Move: Sendable, Hashable {
        /// The item's identifier.
        public let id: ID
        /// Its index in the old list.
        public let from: Int
        /// Its index in the new list.
        public let to: Int
    }

    /// The removals by index in the old list, descending: the order in which they can be applied.
    public let removals: [Place]
    /// The insertions by index in the new list, ascending: the order in which they can be applied.
    public let insertions: [Place]
    /// The moves, by index in the new list, ascending. To apply a move, remove the item together with `removals` and
    /// insert it together with `insertions`.
    public let moves: [Move]
    /// The items that have changed, by index in the new list.
    public let updates: [Place]

    /// Whether the lists are equal.
    public var isEmpty: Bool { removals.isEmpty && insertions.isEmpty && moves.isEmpty && updates.isEmpty }

    /// Compares two lists. If an identifier occurs more than once in a list, only its first item counts.
    public init<Item: Identifiable & Equatable>(from old: [Item], to new: [Item]) where Item.ID == ID {
        var before: [ID: Int] = [:]
        for (index, item) in old.enumerated() where before[item.id] == nil { before[item.id] = index }
        var after: [ID: Int] = [:]
        for (index, item) in new.enumerated() where after[item.id] == nil { after[item.id] = index }
        removals = before.filter { after[$0.key] == nil }.map { Place(id: $0.key, index: $0.value) }
            .sorted { $0.index > $1.index }
        insertions = after.filter { before[$0.key] == nil }.map { Place(id: $0.key, index: $0.value) }
            .sorted { $0.index < $1.index }
        let common = after.compactMap { id, to in before[id].map { Move(id: id, from: $0, to: to) } }
            .sorted { $0.to < $1.to }
        let staying = IncreasingSubsequence.indices(of: common.map(\.from))
        moves = common.enumerated().filter { !staying.contains($0.offset) }.map(\.element)
        updates = common.filter { old[$0.from] != new[$0.to] }.map { Place(id: $0.id, index: $0.to) }
    }
}

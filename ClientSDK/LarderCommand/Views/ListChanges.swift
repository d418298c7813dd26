/// The differences of two states of a list, newest first, whose old end may be cut off.
struct ListChanges<Item: Identifiable & Equatable> {
    /// The new and the changed items in the order of the new list; without an old one, an item is new.
    let edits: [(old: Item?, new: Item)]
    /// The items that are not in the new list, although one that is older than they are is.
    let deletions: [Item]

    init(from old: [Item], to new: [Item]) {
        let before = Dictionary(old.map { ($0.id, $0) }) { first, _ in first }
        edits = new.filter { before[$0.id] != $0 }.map { (before[$0.id], $0) }
        let after = Set(new.map(\.id))
        let end = old.lastIndex { after.contains($0.id) } ?? 0
        deletions = old.prefix(end).filter { !after.contains($0.id) }
    }
}

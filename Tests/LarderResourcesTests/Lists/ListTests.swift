import LarderResources
import LarderTime
import TestSupport
import Testing

@Suite("List differences", .oneMinute)
struct ListTests {
    struct Item: Identifiable, Equatable, Sendable {
        var id: Int
        var text = ""
    }

    /// Applies a difference to a list, as a view does.
    static func apply(_ difference: ListDifference<Int>, to old: [Item], _ new: [Item]) -> [Item] {
        var items = old
        let leaving = difference.removals.map(\.index) + difference.moves.map(\.from)
        for index in leaving.sorted(by: >) { items.remove(at: index) }
        let coming = difference.insertions.map(\.index) + difference.moves.map(\.to)
        for index in coming.sorted() { items.insert(new[index], at: index) }
        for update in difference.updates { items[update.index] = new[update.index] }
        return items
    }

    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
    func `a difference turns the old list into the new one with a minimum of moves`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for round in 0..<400 {
            func list() -> [Item] {
                let ids = Array(0..<12).shuffled(using: &generator).prefix(generator.uniform(in: 0..<12))
                return ids.map { Item(id: $0, text: "\(generator.uniform(in: 0..<2))") }
            }
            let (old, new) = (list(), list())
            let difference = ListDifference(from: old, to: new)
            #expect(Self.apply(difference, to: old, new) == new, "seed \(seed), round \(round): \(old) → \(new)")
            #expect(ListDifference(from: new, to: new).isEmpty)
        }
        let old = (0..<100).map { Item(id: $0) }
        let new = [old[99]] + old[..<99]
        let moves = ListDifference(from: old, to: new).moves
        #expect(moves.count == 1 && moves[0].id == 99 && moves[0].from == 99 && moves[0].to == 0)
    }
}

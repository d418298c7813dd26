import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("Lists that are looked at", .oneMinute)
struct ListTests {
    struct Item: Identifiable, Equatable, Sendable {
        var id: Int
        var text = ""
    }

    /// Does what a view does with a difference.
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
    func `a difference makes the new list of the old one, with as few moves as can be`(_ seed: UInt64) {
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

    @Test func `new items are held back until they are taken, while changes and removals show at once`() {
        var list = HeldBackList<Item>()
        list.receive([])
        list.receive([Item(id: 3), Item(id: 2), Item(id: 1)])
        #expect(list.items.map(\.id) == [3, 2, 1] && list.heldCount == 0)
        list.receive([Item(id: 5), Item(id: 4), Item(id: 3), Item(id: 2, text: "edited"), Item(id: 1), Item(id: 0)])
        #expect(list.items.map(\.id) == [3, 2, 1, 0] && list.items[1].text == "edited" && list.heldCount == 2)
        list.receive([Item(id: 5), Item(id: 2), Item(id: 1), Item(id: 0)])
        #expect(list.items.map(\.id) == [2, 1, 0] && list.heldCount == 1)
        #expect(list.take() == 1 && list.items.map(\.id) == [5, 2, 1, 0] && list.heldCount == 0)
        list.receive([Item(id: 9), Item(id: 8)])
        #expect(list.items.map(\.id) == [9, 8] && list.heldCount == 0)
    }

    @Test func `a reader of a list takes the new items when they like`() async throws {
        let scene = CacheScene()
        let cache = try scene.cache()
        let source = ScriptedSource<EntityList<Note>>()
        func page(_ ids: ClosedRange<Int>) -> Fetched<EntityList<Note>> {
            .value(EntityList(ids.reversed().map { Note(id: "\($0)", text: "", revision: 1) }))
        }
        source.prepare(page(1...3))
        let list = Resource<EntityList<Note>>.list("all", of: Note.self) { try await source.fetch($0) }
        let held = cache.snapshots(list).holdingNewItems()
        let views = SequenceRecorder(held)
        await views.wait { $0.last?.items.count == 3 }
        source.prepare(page(1...5))
        _ = try await cache.refresh(list)
        await views.wait { $0.last?.heldCount == 2 }
        #expect(views.elements.last?.items.map(\.id) == ["3", "2", "1"])
        #expect(held.take() == 2)
        await views.wait { $0.last?.items.count == 5 }
        #expect(views.elements.last?.difference.insertions.map(\.id) == ["5", "4"])
        try cache.update { $0.remove(Note.self, "4", deletedInVersion: 2) }
        await views.wait { $0.last?.items.count == 4 }
        #expect(views.elements.last?.difference.removals.map(\.id) == ["4"])
    }

    private func held(_ cache: LarderCache) -> (HeldBackSnapshots<Note>, Resource<EntityList<Note>>) {
        let list = Resource<EntityList<Note>>.list("all", of: Note.self) { _ in
            .value(EntityList([Note(id: "2", text: "", revision: 1), Note(id: "1", text: "", revision: 1)]))
        }
        return (cache.snapshots(list).holdingNewItems(), list)
    }

    @Test func `a list with held-back items can be iterated again after a cancellation`() async throws {
        let cache = try CacheScene().cache(inMemory: true)
        let (held, list) = held(cache)
        let first = SequenceRecorder(held)
        await first.wait { $0.last?.items.count == 2 }
        first.cancel()
        await first.waitForEnd()
        try cache.update { update in
            update.put(Note(id: "3", text: "", revision: 1))
            update.edit(list.key) { $0.insert(Note.key("3"), at: 0) }
        }
        let second = SequenceRecorder(held)
        await second.wait { $0.last?.heldCount == 1 }
        // What was shown before is still shown, and what came meanwhile is held back.
        #expect(second.elements.last?.items.map(\.id) == ["2", "1"])
        #expect(held.take() == 1)
        await second.wait { $0.last?.items.count == 3 }
        #expect(second.elements.last?.difference.insertions.map(\.id) == ["3"])
    }

    @Test func `a list with held-back items is not observed after its loop was left`() async throws {
        let cache = try CacheScene().cache(inMemory: true)
        let (held, list) = held(cache)
        for await view in held where view.items.count == 2 { break }
        let node = cache.core.nodes.node(of: list, in: cache.core)
        #expect(node.state.withLock { $0.observers.isEmpty })
        withExtendedLifetime(held) {}
    }
}

import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderStorage

/// The members of a list are compared with an array that is edited in the same way.
@Suite("Members of lists", .oneMinute)
struct ListMembersTests {
    typealias Entry = ListMembers.Entry

    @Test(arguments: seeds(5))
    func `random edits leave the same members as an array, and the rows follow by differences`(_ seed: UInt64) {
        var script = ListScript(seed)
        var (list, model) = (ListMembers(), [Entry]())
        var rows: [Int64: Entry] = [:]
        var known: [ListRow] = []
        for step in 0..<150 {
            let before = list
            let text = "seed \(seed), step \(step): \(script.edit(&list, &model))"
            let new = ListRow.rows(of: list.entries, after: known)
            let difference = ListRow.difference(from: known, to: new)
            known = new
            for position in difference.removed { rows[position] = nil }
            for slot in difference.stored { rows[slot.position] = slot.entry }
            #expect(rows.sorted { $0.key < $1.key }.map(\.value) == model, "\(text)")
            #expect(Array(list.entries) == model && list.count == model.count, "\(text)")
            #expect(list.keys == model.map(\.key), "\(text)")
            #expect((list == before) == (Array(before.entries) == model), "\(text)")
            for number in 0..<20 {
                let key = ListScript.key(number)
                #expect(list.contains(key) == model.contains { $0.key == key }, "\(text)")
                #expect(list.mark(of: key) == model.first { $0.key == key }?.mark, "\(text)")
            }
        }
    }

    @Test(arguments: seeds(5))
    func `a stored list is the edited one, also after reopening, after other writers, and without knowing the rows`(
        _ seed: UInt64
    ) throws {
        let fixture = DiskFixture()
        var script = ListScript(seed)
        var store = try fixture.store()
        let key = QueryKey("list")
        var (query, model) = (fixture.query(key), [Entry]())
        for step in 0..<80 {
            for _ in 0..<script.number(1...4) { _ = script.edit(&query.members, &model) }
            let text = "seed \(seed), step \(step)"
            let list = query
            query = try store.write { transaction throws in try transaction.put(list) }
            switch script.number(0...9) {
            case 0:
                store = try fixture.store()
                query = try #require(try store.query(key), "\(text)")
            case 1:
                // Its rows are unknown here, as those of an answer of the server.
                var answer = fixture.query(key)
                answer.members = ListMembers(entries: model)
                query = answer
            case 2:
                // Written by another process: what is known of the rows is outdated.
                let other = query
                _ = script.edit(&query.members, &model)
                let changed = query
                _ = try store.write { transaction throws in try transaction.put(changed) }
                query.stored = other.stored
            case 3: try store.write { transaction throws in try transaction.touch(&query) }
            default: break
            }
            let stored = try #require(try store.query(key), "\(text)")
            #expect(Array(stored.members.entries) == model, "\(text)")
            for entry in model.prefix(5) {
                #expect(try store.read { try $0.queries(with: entry.key) } == [key], "\(text)")
            }
        }
        let last = query
        _ = try store.write { transaction throws in try transaction.put(last) }
        #expect(try fixture.store().query(key)?.ids == model.map(\.key), "seed \(seed)")
        #expect(fixture.events.isEmpty, "seed \(seed)")
    }

    @Test(arguments: [100, 1_000, 10_000])
    func `an edit writes as many rows in a long list as in a short one`(_ count: Int) throws {
        let fixture = DiskFixture()
        let store = try fixture.store()
        var query = fixture.query(QueryKey("list"))
        query.members = ListMembers((0..<count).map { EntityKey(type: "post", id: "post_\($0)") })
        let whole = query
        query = try store.write { transaction throws in try transaction.put(whole) }
        func rows(_ edit: (inout ListMembers) -> Void) throws -> Int64 {
            edit(&query.members)
            let (list, before) = (query, try store.rowChanges())
            query = try store.write { transaction throws in try transaction.put(list) }
            return try store.rowChanges() - before
        }
        // The list itself, its payload, the totals, and the member.
        #expect(try rows { $0.insert(Entry(ListScript.key(-1)), at: 0) } <= 4)
        #expect(try rows { $0.insert(Entry(ListScript.key(-2)), at: count / 2) } <= 4)
        #expect(try rows { $0.remove(EntityKey(type: "post", id: "post_\(count / 2)")) } <= 4)
        #expect(try rows { $0.setMark(7, of: EntityKey(type: "post", id: "post_3")) } <= 4)
        // By the keys alone, as a closure of the app does it.
        #expect(try rows { $0.replace(with: [Entry(ListScript.key(-3))] + Array($0.entries)) } <= 4)
        // 200 insertions at one place need new positions now and then.
        var sum: Int64 = 0
        for number in 0..<200 { sum += try rows { $0.insert(Entry(ListScript.key(-10 - number)), at: 5) } }
        #expect(sum <= 200 * 12, "\(sum)")
        #expect(try store.query(query.key)?.ids == query.ids)
    }
}

extension DiskFixture {
    fileprivate func query(_ key: QueryKey) -> DiskQuery {
        DiskQuery(key, ids: [], isComplete: false, fetchedAt: clock.now, expiresAt: clock.now + .seconds(60))
    }
}

/// Random edits of a list and of an array.
private struct ListScript {
    private var generator: SeededGenerator
    private var lastNew = 1_000

    init(_ seed: UInt64) { generator = SeededGenerator(seed: seed) }

    static func key(_ number: Int) -> EntityKey { EntityKey(type: "post", id: "post_\(number)") }

    mutating func number(_ range: ClosedRange<Int>) -> Int {
        generator.uniform(in: range.lowerBound..<(range.upperBound + 1))
    }

    /// A key that is new, or, rarely, one that the list may have.
    private mutating func entry() -> ListMembers.Entry {
        lastNew += 1
        let key = Self.key(number(0...9) == 0 ? number(0...19) : lastNew)
        return ListMembers.Entry(
            key,
            mark: number(0...4) == 0 ? Int64(number(0...9)) : nil,
            note: number(0...9) == 0 ? "note \(number(0...9))" : nil
        )
    }

    /// Edits both; returns what was done.
    mutating func edit(_ list: inout ListMembers, _ model: inout [ListMembers.Entry]) -> String {
        switch number(0...11) {
        case 0...3:
            let offset = number(0...3) == 0 ? number(0...model.count) : min(number(0...1), model.count)
            let new = entry()
            list.insert(new, at: offset)
            model.insert(new, at: offset)
            return "insert \(new.key) at \(offset)"
        case 4:
            // Many at one place, so that positions run out.
            let offset = min(number(0...2), model.count)
            for _ in 0..<70 {
                let new = entry()
                list.insert(new, at: offset)
                model.insert(new, at: offset)
            }
            return "insert 70 at \(offset)"
        case 5...7:
            let key =
                model.isEmpty || number(0...5) == 0
                ? Self.key(number(0...19)) : model[number(0...(model.count - 1))].key
            list.remove(key)
            model.removeAll { $0.key == key }
            return "remove \(key)"
        case 8:
            guard !model.isEmpty else { return "nothing" }
            let key = model[number(0...(model.count - 1))].key
            let mark: Int64? = number(0...1) == 0 ? nil : Int64(number(0...9))
            list.setMark(mark, of: key)
            if let index = model.firstIndex(where: { $0.key == key }) { model[index].mark = mark }
            return "mark \(key)"
        case 9:
            for _ in 0..<number(1...5) where model.count > 1 {
                let moved = model.remove(at: number(0...(model.count - 1)))
                model.insert(moved, at: number(0...model.count))
            }
            list.replace(with: model)
            return "move some"
        case 10:
            let start = number(0...model.count)
            let end = min(model.count, start + number(0...60))
            model.replaceSubrange(start..<end, with: (0..<number(0...40)).map { _ in entry() })
            list.replace(with: model)
            return "replace \(start)..<\(end)"
        default:
            guard number(0...9) == 0 else { return "nothing" }
            model = (0..<number(0...300)).map { _ in entry() }
            list.replace(with: model)
            return "replace all"
        }
    }
}

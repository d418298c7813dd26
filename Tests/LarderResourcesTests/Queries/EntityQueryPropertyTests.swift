import LarderStorage
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderResources

/// Random puts, changes, pending edits, removals and restarts, and random queries against a filter of a model.
@Suite("Local queries: random runs against a model", .oneMinute)
struct EntityQueryPropertyTests {
    @Test(arguments: seeds(10))
    func `a query finds what a filter of the model finds, in its order`(_ seed: UInt64) async throws {
        var run = try QueryRun(seed)
        for step in 0..<60 {
            let name = try await run.step()
            for _ in 0..<3 {
                let difference = try await run.difference()
                #expect(difference == nil, "seed \(seed), step \(step) (\(name)): \(difference ?? "")")
                guard difference == nil else { return }
            }
        }
    }
}

private struct QueryRun {
    private static let words = ["Apfel", "äpfel", "pear", "Pearls", "plum", "grün", "42", "日本"]

    private var generator: SeededGenerator
    private let scene = CacheScene()
    private let seed: UInt64
    private var cache: LarderCache
    private var stored: [String: Memo] = [:]
    private var pending: [(operation: OperationID, edit: MemoEdit)] = []

    init(_ seed: UInt64) throws {
        self.seed = seed
        generator = SeededGenerator(seed: seed)
        cache = try Self.open(scene, seed)
    }

    private static func open(_ scene: CacheScene, _ seed: UInt64) throws -> LarderCache {
        var configuration = scene.configuration(inMemory: seed % 4 == 1)
        configuration.operations = [MemoEdit.operation]
        // With few in memory the rows are read.
        if seed % 2 == 0 { configuration.memoryEntriesMaximum = 64 }
        if seed % 8 == 3 { configuration.editStore { $0.transform = MaskingTransform() } }
        return try LarderCache(configuration)
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[generator.uniform(in: 0..<elements.count)]
    }

    private mutating func memo(_ id: String) -> Memo {
        Memo(
            id,
            title: "\(pick(Self.words)) \(pick(Self.words))-\(pick(Self.words))",
            color: pick([.red, .green, .blue]),
            rank: generator.unit() < 0.2 ? nil : generator.uniform(in: -3..<4),
            weight: pick([-1.5, 0, 0.25, 3, .infinity]) == .infinity
                ? 1e300 : Double(generator.uniform(in: -9..<9)) / 4,
            pages: generator.uniform(in: 0..<5)
        )
    }

    mutating func step() async throws -> String {
        let id = "m\(generator.uniform(in: 0..<120))"
        switch generator.uniform(in: 0..<100) {
        case ..<40:
            var new: [Memo] = []
            for _ in 0..<generator.uniform(in: 1..<12) { new.append(memo("m\(generator.uniform(in: 0..<120))")) }
            let memos = new
            try await cache.update { update in for memo in memos { update.put(memo) } }
            for memo in memos { stored[memo.id] = memo }
            return "put \(memos.map(\.id))"
        case ..<55:
            let new = memo(id)
            try await cache.update { $0.modify(Memo.self, id) { $0 = new } }
            if stored[id] != nil { stored[id] = new }
            return "modify \(id)"
        case ..<65:
            try await cache.update { $0.remove(Memo.self, id) }
            stored[id] = nil
            return "remove \(id)"
        case ..<82:
            let edit = MemoEdit(id: id, memo: generator.unit() < 0.3 ? nil : memo(id))
            if let operation = try cache.enqueue(edit, MemoEdit.operation) { pending.append((operation, edit)) }
            return "enqueue \(id)"
        case ..<92:
            guard !pending.isEmpty else { return "nothing to drop" }
            let dropped = pending.remove(at: generator.uniform(in: 0..<pending.count))
            try cache.outbox.drop(dropped.operation)
            return "drop \(dropped.edit.id)"
        default:
            guard seed % 4 != 1 else { return "no restart" }
            cache.close()
            cache = try Self.open(scene, seed)
            return "restart"
        }
    }

    private var visible: [Memo] {
        var visible = stored
        for (_, edit) in pending { visible[edit.id] = edit.memo }
        return visible.values.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
    }

    /// The difference between a random query and the model; nil if there is none.
    mutating func difference() async throws -> String? {
        var query = cache.entities(Memo.self)
        var expected = visible
        var text: [String] = []
        if generator.unit() < 0.4 {
            let colors = generator.unit() < 0.5 ? [pick([Memo.Color.red, .green])] : [.green, .blue]
            query = query.where(\.color, .anyOf(colors))
            expected = expected.filter { colors.contains($0.color) }
            text.append("\(colors)")
        }
        if generator.unit() < 0.4 {
            let (low, high) = (generator.uniform(in: -3..<3), generator.uniform(in: -3..<4))
            switch generator.uniform(in: 0..<4) {
            case 0:
                query = query.where(\.rank, .equal(nil))
                expected = expected.filter { $0.rank == nil }
            case 1:
                query = query.where(\.rank, .atLeast(low))
                expected = expected.filter { $0.rank.map { $0 >= low } ?? false }
            case 2:
                query = query.where(\.rank, .atMost(high))
                expected = expected.filter { $0.rank.map { $0 <= high } ?? false }
            default:
                query = query.where(\.rank, .between(low, high))
                expected = expected.filter { $0.rank.map { $0 >= low && $0 <= high } ?? false }
            }
            text.append("rank \(low) \(high)")
        }
        if generator.unit() < 0.3 {
            let pages = generator.uniform(in: 0..<5)
            query = generator.unit() < 0.5 ? query.where(\.pages, .atLeast(pages)) : query.where { $0.pages >= pages }
            expected = expected.filter { $0.pages >= pages }
            text.append("pages \(pages)")
        }
        if generator.unit() < 0.3 {
            let (words, stems) = pick([
                ("APFEL", ["apfel"]), ("pea", ["pea"]), ("grun 4", ["grun", "4"]), ("日", ["日"]),
            ])
            query = query.matching(words)
            expected = expected.filter { memo in
                let known = memo.title.lowercased().replacing("ä", with: "a").replacing("ü", with: "u")
                    .split { $0 == " " || $0 == "-" }
                return stems.allSatisfy { stem in known.contains { $0.hasPrefix(stem) } }
            }
            text.append(words)
        }
        let isDescending = generator.unit() < 0.5
        switch generator.uniform(in: 0..<4) {
        case 0:
            query = query.sorted(by: \.rank, descending: isDescending)
            // The sort of the standard library is stable.
            expected.sort { left, right in
                let (left, right) = (left.rank ?? .min, right.rank ?? .min)
                return isDescending ? left > right : left < right
            }
        case 1:
            query = query.sorted(by: \.weight, descending: isDescending)
            expected.sort { isDescending ? $0.weight > $1.weight : $0.weight < $1.weight }
        case 2:
            query = query.sorted(by: \.pages, descending: isDescending).sorted(by: \.weight)
            expected.sort { left, right in
                if left.pages != right.pages { return isDescending == (left.pages > right.pages) }
                return left.weight < right.weight
            }
        default: break
        }
        if generator.unit() < 0.6 {
            let limit = generator.uniform(in: 0..<20)
            query = query.limit(limit)
            expected = Array(expected.prefix(limit))
        }
        let found = try await query.values()
        guard found != expected else { return nil }
        return "\(text): found \(found), expected \(expected)"
    }
}

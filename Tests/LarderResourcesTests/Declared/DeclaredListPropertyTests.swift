import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderResources

/// Random puts, modifications, operations, deletions, rejections, refreshes and restarts against a model.
@Suite("Declared lists: random runs against a model", .oneMinute)
struct DeclaredListPropertyTests {
    @Test(arguments: seeds(16))
    func `every list shows what the model says after every step`(_ seed: UInt64) async throws {
        var run = try DeclaredListRun(seed)
        for step in 0..<120 {
            let name = try await run.step()
            let difference = run.difference()
            #expect(difference == nil, "seed \(seed), step \(step) (\(name)): \(difference ?? "")")
            guard difference == nil else { return }
        }
    }
}

/// A cache, its server, and a model that is written without the code under test.
private struct DeclaredListRun {
    private static let statuses = 0..<3

    /// What the source has returned for a list, and what has changed since.
    private struct Base {
        var ids: [String]
        var isWhole: Bool
        var changed: Set<String> = []
    }

    private var generator: SeededGenerator
    private let scene = CacheScene()
    private let board = JobBoard()
    private let isInMemory: Bool
    private var cache: LarderCache

    private var stored: [String: Job] = [:]
    private var bases: [Int: Base] = [:]
    private var pending: [JobEdit] = []
    private var localCount = 0

    init(_ seed: UInt64) throws {
        generator = SeededGenerator(seed: seed)
        isInMemory = seed % 4 == 0
        for _ in 0..<9 { board.set(status: generator.uniform(in: 0..<3), rank: generator.uniform(in: 0..<40)) }
        cache = try Self.open(scene, board, isInMemory)
    }

    private static func open(_ scene: CacheScene, _ board: JobBoard, _ isInMemory: Bool) throws -> LarderCache {
        var configuration = scene.configuration(inMemory: isInMemory)
        configuration.operations = [board.operation]
        return try LarderCache(configuration)
    }

    // MARK: Steps

    mutating func step() async throws -> String {
        switch generator.uniform(in: 0..<100) {
        case ..<15: return try await refresh(generator.uniform(in: 0..<3))
        case ..<35: return try serverChange()
        case ..<42: return try serverDeletion()
        case ..<52: return try modification()
        case ..<80: return try enqueue()
        case ..<92: return try await drain()
        default: return try restart()
        }
    }

    private mutating func refresh(_ status: Int) async throws -> String {
        let limit = generator.uniform(in: 0..<3) == 0 ? generator.uniform(in: 1..<4) : Int.max
        board.state.withLock { $0.limit[status] = limit }
        let list = board.list(status)
        _ = try await cache.refresh(board.resource(status))
        for job in list.items { put(job, exceptFor: status) }
        bases[status] = Base(ids: list.items.map(\.id), isWhole: list.nextCursor == nil)
        return "refresh \(status)"
    }

    private mutating func serverChange() throws -> String {
        let known = board.state.withLock { $0.jobs.keys.sorted() }
        let id = known.isEmpty || generator.unit() < 0.25 ? nil : known[generator.uniform(in: 0..<known.count)]
        let job = board.set(id, status: generator.uniform(in: 0..<3), rank: generator.uniform(in: 0..<40))
        guard generator.unit() < 0.8 else { return "a change without an event: \(job)" }
        try cache.updateBlocking { $0.put(job) }
        put(job)
        return "event \(job)"
    }

    private mutating func serverDeletion() throws -> String {
        let known = board.state.withLock { $0.jobs.keys.sorted() }
        guard !known.isEmpty else { return "nothing to delete" }
        let id = known[generator.uniform(in: 0..<known.count)]
        let version = board.delete(id)
        guard generator.unit() < 0.8 else { return "a deletion without an event: \(id)" }
        try cache.updateBlocking { $0.remove(Job.self, id, deletedInVersion: version) }
        remove(id)
        return "deletion \(id)"
    }

    private mutating func modification() throws -> String {
        guard let id = randomID(stored.keys.sorted()) else { return "nothing to modify" }
        let (status, rank) = (generator.uniform(in: 0..<3), generator.uniform(in: 0..<40))
        try cache.updateBlocking { $0.modify(Job.self, id) { ($0.status, $0.rank) = (status, rank) } }
        stored[id]?.status = status
        stored[id]?.rank = rank
        note(id)
        return "modify \(id): \(status), \(rank)"
    }

    private mutating func enqueue() throws -> String {
        var edit = JobEdit(
            kind: .set,
            id: "",
            status: generator.uniform(in: 0..<3),
            rank: generator.uniform(in: 0..<40)
        )
        switch generator.uniform(in: 0..<10) {
        case ..<2:
            localCount += 1
            (edit.kind, edit.id) = (.create, "local-\(localCount)")
        case ..<4:
            guard let id = randomID(stored.keys.sorted()) else { return "nothing to delete" }
            (edit.kind, edit.id) = (.delete, id)
        default:
            guard let id = randomID(stored.keys.sorted()) else { return "nothing to edit" }
            edit.id = id
        }
        try cache.enqueue(edit, board.operation)
        pending.append(edit)
        return "enqueue \(edit)"
    }

    private mutating func drain() async throws -> String {
        let rejected = Set(pending.map(\.id).filter { _ in generator.unit() < 0.3 })
        board.state.withLock { $0.rejected = rejected }
        let before = board.state.withLock { $0.jobs }
        cache.outbox.resume()
        try await cache.outbox.drained()
        cache.outbox.pause()
        let after = board.state.withLock { $0.jobs }
        var gone = Set<String>()
        for edit in pending where edit.kind == .delete && !rejected.contains(edit.id) {
            // A deletion of something that the server does not have is rejected.
            if before[edit.id] != nil, gone.insert(edit.id).inserted { remove(edit.id) }
        }
        for (id, job) in after.sorted(by: { $0.key < $1.key }) where before[id] != job { put(job) }
        let ended = pending.map { "\($0.kind) \($0.id)" }
        pending = []
        return "drain \(ended), rejected \(rejected)"
    }

    private mutating func restart() throws -> String {
        guard !isInMemory else { return "no restart" }
        cache.close()
        cache = try Self.open(scene, board, isInMemory)
        return "restart"
    }

    private mutating func randomID(_ ids: [String]) -> String? {
        ids.isEmpty ? nil : ids[generator.uniform(in: 0..<ids.count)]
    }

    // MARK: The model

    private mutating func put(_ job: Job, exceptFor status: Int? = nil) {
        if let known = stored[job.id] {
            if known.revision > job.revision || known == job { return }
        }
        stored[job.id] = job
        note(job.id)
    }

    private mutating func note(_ id: String) {
        for status in bases.keys { bases[status]?.changed.insert(id) }
    }

    private mutating func remove(_ id: String) {
        stored[id] = nil
        for status in bases.keys {
            bases[status]?.ids.removeAll { $0 == id }
            bases[status]?.changed.remove(id)
        }
    }

    private func visible(_ id: String) -> Job? {
        pending.filter { $0.id == id }.reduce(stored[id]) { job, edit in
            switch edit.kind {
            case .delete: return nil
            case .create: return job ?? Job(id: id, status: edit.status, rank: edit.rank, revision: 0)
            case .set:
                guard var job else { return nil }
                (job.status, job.rank) = (edit.status, edit.rank)
                return job
            }
        }
    }

    private func expected(_ status: Int, _ base: Base) -> [Job] {
        let moving = base.changed.union(pending.map(\.id))
        let fixed = base.ids.filter { !moving.contains($0) }.compactMap(visible)
        var members = moving.compactMap(visible).filter { $0.status == status }
        if !base.isWhole {
            // Behind the last fixed item only those stay that were there, in order.
            let tail = base.ids.lastIndex { !moving.contains($0) && visible($0) != nil }
            var staying: [Job] = []
            for id in base.ids[((tail ?? -1) + 1)...] {
                guard let job = visible(id), job.status == status else { continue }
                let previous = staying.last ?? fixed.last
                if previous.map({ Job.precedes($0, job) }) ?? true { staying.append(job) }
            }
            let names = Set(staying.map(\.id))
            // What was in the list and has moved stays before the last item that is shown, others before the last fixed one.
            members.removeAll { job in
                guard !names.contains(job.id) else { return false }
                let end = base.ids.contains(job.id) ? staying.last ?? fixed.last : fixed.last
                return !(end.map { Job.precedes(job, $0) } ?? false)
            }
        }
        return (fixed + members).sorted(by: Job.precedes)
    }

    /// The first list that differs from the model, in words.
    func difference() -> String? {
        for status in Self.statuses {
            guard let base = bases[status] else { continue }
            let shown = cache.stored(board.resource(status))?.value?.items
            let expected = expected(status, base)
            if shown != expected {
                return
                    "list \(status) shows \(shown?.map(\.id) ?? []), expected \(expected.map(\.id)), \(base), \(pending)"
            }
        }
        return nil
    }
}

import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

/// Random replies, events in any order, evictions and restarts against a model that is a plain array.
@Suite("Lists: random runs against a model", .oneMinute)
struct ListPropertyTests {
    @Test(arguments: seeds(12))
    func `a list has the server's order with later changes, and nothing deleted or doubled`(_ seed: UInt64) async throws
    {
        var run = try ListRun(seed)
        for step in 0..<80 {
            let name = try await run.step()
            let (shown, expected) = run.lists()
            #expect(shown == expected, "seed \(seed), step \(step) (\(name))")
            guard shown == expected else { return }
        }
        let (shown, expected) = try await run.finish()
        #expect(shown == expected, "seed \(seed), a full refresh at the end")
    }
}

/// A server with one list, a cache, and what the list must show.
private struct ListRun {
    /// A change of the keys of the list.
    private typealias Edit = @Sendable ([String]) -> [String]

    private enum Event {
        case put(Note)
        /// The item with an edit of the list, which has no effect where it is applied already.
        case place(Note, Edit)
        case delete(String, version: Int64)
    }

    private enum Effect { case removal, insertion, move }

    private struct Reply {
        var notes: [Note]
        var validator: String
        var isNotModified: Bool
    }

    /// A request in flight.
    private struct Request {
        var task: Task<Void, any Error>
        var early: Reply
        var known: String?
        /// What the changes since it began have done with items.
        var edits: [String: Effect] = [:]
        /// Whether one of them has changed the list: a reply "not modified" does not confirm it, and the whole list is requested.
        var isChanged = false
    }

    private let scene = CacheScene()
    private let source = ScriptedSource<EntityList<Note>>()
    private let list: Resource<EntityList<Note>>
    private var cache: LarderCache
    private var generator: SeededGenerator
    private var server: [Note] = []
    private var lastID = 0
    private var events: [Event] = []
    private var request: Request?
    private var ids: [String]?
    private var notes: [String: Note] = [:]
    private var deleted: [String: Int64] = [:]

    init(_ seed: UInt64) throws {
        generator = SeededGenerator(seed: seed)
        var list = Resource.list("notes") { [source] in try await source.fetch($0) }
        // A run may leave its request unanswered for minutes.
        list.timeout = nil
        self.list = list
        cache = try scene.cache()
        for _ in 0..<6 { _ = insertAtServer() }
    }

    // MARK: Steps

    mutating func step() async throws -> String {
        scene.clock.advance(by: .milliseconds(generator.uniform(in: 1..<2_000)))
        switch generator.uniform(in: 0..<20) {
        case ..<4: return try await begin()
        case ..<8: return try await answer(isEarly: generator.uniform(in: 0..<2) == 0)
        case ..<13: return change()
        case ..<18: return try deliver()
        case 18:
            cache.trimMemory(toBytes: 0)
            return "eviction"
        default: return try await restart()
        }
    }

    private mutating func begin() async throws -> String {
        guard request == nil else { return "a request is in flight" }
        let count = source.requests.count
        let task = Task { [cache, list] in _ = try await cache.refresh(list) }
        await source.waitForRequests(count + 1)
        let known = source.requests[count].validator
        request = Request(task: task, early: reply(known), known: known)
        return "request"
    }

    private func reply(_ known: String?) -> Reply {
        let validator = server.map { "\($0.id)/\($0.revision ?? 0)" }.joined(separator: " ")
        return Reply(notes: server, validator: validator, isNotModified: validator == known)
    }

    /// Answers the request with the list of when it began, or of now.
    private mutating func answer(isEarly: Bool) async throws -> String {
        guard var request else { return "no request" }
        self.request = nil
        var reply = isEarly ? request.early : reply(request.known)
        let fetched: Fetched<EntityList<Note>> =
            reply.isNotModified ? .notModified() : .value(EntityList(reply.notes), validator: reply.validator)
        let count = source.requests.count
        source.answer(count - 1, fetched)
        if reply.isNotModified {
            guard request.isChanged else {
                try await request.task.value
                return "not modified"
            }
            // The second request begins after the changes.
            await source.waitForRequests(count + 1)
            reply = self.reply(nil)
            request.edits = [:]
            source.answer(count, .value(EntityList(reply.notes), validator: reply.validator))
        }
        try await request.task.value
        ids = edited(reply.notes.map(\.id), request.edits)
        for note in reply.notes { put(note) }
        return isEarly ? "early reply" : "late reply"
    }

    private mutating func insertAtServer() -> Event {
        lastID += 1
        let note = Note(id: "\(lastID)", text: "first", revision: 1)
        let place = generator.uniform(in: 0..<server.count + 1)
        let predecessor = place > 0 ? server[place - 1].id : nil
        server.insert(note, at: place)
        return .place(note) { [id = note.id] ids in
            guard !ids.contains(id) else { return ids }
            var ids = ids
            let index = predecessor.flatMap { ids.firstIndex(of: $0) }
            ids.insert(id, at: index.map { $0 + 1 } ?? 0)
            return ids
        }
    }

    private mutating func change() -> String {
        let kind = server.isEmpty ? 0 : generator.uniform(in: 0..<4)
        let event: Event
        switch kind {
        case 0: event = insertAtServer()
        case 1:
            let note = server.remove(at: generator.uniform(in: 0..<server.count))
            event = .delete(note.id, version: (note.revision ?? 0) + 1)
        case 2:
            let index = generator.uniform(in: 0..<server.count)
            server[index].revision = (server[index].revision ?? 0) + 1
            server[index].text = "edit \(server[index].revision ?? 0)"
            event = .put(server[index])
        default:
            var note = server.remove(at: generator.uniform(in: 0..<server.count))
            note.revision = (note.revision ?? 0) + 1
            server.insert(note, at: 0)
            event = .place(note) { [id = note.id] ids in [id] + ids.filter { $0 != id } }
        }
        // Some events are lost.
        if generator.uniform(in: 0..<5) > 0 { events.append(event) }
        return "change at the server"
    }

    private mutating func deliver() throws -> String {
        guard !events.isEmpty else { return "no event" }
        let event = events.remove(at: generator.uniform(in: 0..<events.count))
        switch event {
        case .put(let note):
            try cache.updateBlocking { $0.put(note) }
            put(note)
        case .place(let note, let edit):
            let key = list.key
            try cache.updateBlocking { update in
                update.put(note)
                update.edit(key) { keys in keys = edit(keys.map(\.id)).map { Note.key($0) } }
            }
            put(note)
            let before = ids
            ids = ids.map(edit)
            guard ids != before else { break }
            request?.isChanged = true
            let isNew = before?.contains(note.id) == false && request?.edits[note.id] != .removal
            request?.edits[note.id] = isNew ? .insertion : .move
        case .delete(let id, let version):
            try cache.updateBlocking { $0.remove(Note.self, id, deletedInVersion: version) }
            notes[id] = nil
            deleted[id] = version
            if ids?.contains(id) == true {
                ids?.removeAll { $0 == id }
                request?.edits[id] = .removal
                request?.isChanged = true
            }
        }
        return "event \(event)"
    }

    private mutating func restart() async throws -> String {
        _ = try await answer(isEarly: true)
        cache.close()
        cache = try scene.cache()
        return "restart"
    }

    // MARK: Model

    private mutating func put(_ note: Note) {
        if let gone = deleted[note.id], gone >= note.revision ?? 0 { return }
        if let known = notes[note.id], known.revision ?? 0 > note.revision ?? 0 { return }
        notes[note.id] = note
    }

    /// A reply with later edits: an item follows the nearest one before it here that the reply has. A reply that has an item which the list
    /// lacked knows its place.
    private func edited(_ reply: [String], _ edits: [String: Effect]) -> [String] {
        var result = reply.filter { edits[$0] == nil || edits[$0] == .insertion }
        for (index, id) in (ids ?? []).enumerated() where edits[id] != nil && !result.contains(id) {
            let previous = ids?[..<index].last { result.contains($0) }.flatMap { result.firstIndex(of: $0) }
            result.insert(id, at: previous.map { $0 + 1 } ?? 0)
        }
        return result
    }

    func lists() -> (shown: [Note], expected: [Note]) {
        (cache.stored(list)?.value?.items ?? [], ids?.compactMap { notes[$0] } ?? [])
    }

    /// Whatever has happened, a full reply without changes meanwhile is shown as it is.
    mutating func finish() async throws -> (shown: [Note], expected: [Note]) {
        _ = try await answer(isEarly: true)
        _ = try await begin()
        _ = try await answer(isEarly: false)
        return (cache.stored(list)?.value?.items ?? [], server)
    }
}

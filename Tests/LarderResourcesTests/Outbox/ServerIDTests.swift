import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// Changes of an entity whose creation ends before they are stored: their callers still have its local ID.
@Suite("Outbox: server IDs of late changes", .oneMinute)
struct ServerIDTests {
    struct Edit: Codable, Sendable, Equatable {
        var id: String
        var text: String
    }

    let scene = CacheScene()
    let sent = SentEdits()

    /// What the server has received.
    final class SentEdits: Sendable {
        let edits = Mutex<[Edit]>([])

        var operation: WriteBehind<Edit, String> {
            var operation = WriteBehind<Edit, String>("edit", scope: { _ in "page" }) { edit, changes in
                changes.modify(Note.self, edit.id) { $0.text = edit.text }
            } send: { [self] attempts in
                edits.withLock { $0 += attempts.map(\.input) }
                return attempts.map { .accepted($0.input.id.hasPrefix("local") ? "server" : $0.input.id) }
            }
            operation.coalescingKey = { $0.id }
            operation.coalesce = { .replace($1) }
            operation.acknowledge = { edit, id, update in update.put(Note(id: id, text: edit.text)) }
            operation.serverIDs = { edit, id in edit.id == id ? [:] : [edit.id: id] }
            operation.replacingIDs = { Edit(id: $1[$0.id] ?? $0.id, text: $0.text) }
            return operation
        }
    }

    private func open() throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.operations = [sent.operation]
        return try LarderCache(configuration)
    }

    private func create(in cache: LarderCache) async throws {
        try cache.enqueue(Edit(id: "local", text: "created"), sent.operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
    }

    @Test func `a change that is stored after its creation has ended gets the server's ID and is shown`() async throws {
        let cache = try open()
        try await create(in: cache)
        cache.outbox.pause()
        for text in ["first", "second"] { try cache.enqueue(Edit(id: "local", text: text), sent.operation) }
        let note = Resource<Note>.entity("server") { _ in .gone }
        #expect(try await cache.value(note, .cacheOnly).text == "second")
        #expect(try cache.outbox.entries.map { try $0.input(as: Edit.self).id } == ["server"])
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(sent.edits.withLock { $0.map(\.id) } == ["local", "server"])
    }

    @Test func `a view that holds a local ID gets the server's, also after a restart`() async throws {
        var cache = try open()
        #expect(cache.serverID(of: "local") == nil)
        try await create(in: cache)
        #expect(cache.serverID(of: "local") == "server")
        cache.close()
        cache = try open()
        #expect(cache.serverID(of: "local") == "server" && cache.serverID(of: "another") == nil)
    }

    @Test func `local changes know the key under which they are sent, after coalescing, a restart and an edit too`()
        async throws
    {
        let seen = Mutex<[String]>([])
        func operation() -> WriteBehind<Edit, String> {
            var operation = WriteBehind<Edit, String>("keyed", scope: { _ in "page" }) { edit, changes in
                let key = changes.idempotencyKey
                changes.modify(Note.self, edit.id) { $0.text = "\(edit.text) \(key)" }
            } send: { attempts in
                seen.withLock { $0 += attempts.map(\.idempotencyKey) }
                return attempts.map { .accepted($0.input.id) }
            }
            operation.coalescingKey = { $0.id }
            operation.coalesce = { .replace($1) }
            return operation
        }
        func open() throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.operations = [operation()]
            return try LarderCache(configuration)
        }
        let note = Resource<Note>.entity("1") { _ in .gone }
        var cache = try open()
        try await cache.update { $0.put(Note(id: "1", text: "server")) }
        for text in ["a", "b"] { try cache.enqueue(Edit(id: "1", text: text), operation()) }
        let key = try #require(cache.outbox.entries.first?.idempotencyKey)
        #expect(cache.outbox.entries.count == 1)
        #expect(try await cache.value(note, .cacheOnly).text == "b \(key)")
        cache.close()
        cache = try open()
        #expect(try await cache.value(note, .cacheOnly).text == "b \(key)")
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(seen.withLock { $0 } == [key])
    }

    @Test(arguments: [false, true])
    func `a change that another process has stored meanwhile gets the server's ID, whichever process sends it`(
        _ isSentByCreator: Bool
    ) async throws {
        let creator = try open()
        let other = try open()
        try await create(in: creator)
        creator.outbox.pause()
        try other.enqueue(Edit(id: "local", text: "late"), sent.operation)
        #expect(try await other.value(Resource<Note>.entity("server") { _ in .gone }, .cacheOnly).text == "late")
        let sender = isSentByCreator ? creator : other
        sender.outbox.resume()
        if isSentByCreator { creator.networkReturned() }
        let statuses = SequenceRecorder(sender.outbox.statuses)
        let sent = sent
        await statuses.wait { $0.last?.isDrained == true && sent.edits.withLock { $0.count } == 2 }
        #expect(sent.edits.withLock { $0.map(\.id) } == ["local", "server"])
    }

    @Test func `only a bounded number of server IDs is kept`() async throws {
        let cache = try open()
        cache.outbox.resume()
        for number in 0..<300 { try cache.enqueue(Edit(id: "local-\(number)", text: ""), sent.operation) }
        try await cache.outbox.drained()
        let stored = try #require(try cache.outboxDisk?.metadata("larder.names"))
        #expect(!stored.isEmpty && stored.count < 16 << 10)
    }
}

@Suite("Outbox: events of the clock", .oneMinute)
struct OutboxClockTests {
    @Test func `the report that the clock was set back may enqueue`() async throws {
        let scene = CacheScene()
        let server = LikeServer(posts: 3)
        let outbox = Mutex<Outbox?>(nil)
        var configuration = scene.configuration()
        configuration.onEvent = { event in
            guard case .clockSetBack = event, let outbox = outbox.withLock({ $0 }) else { return }
            do { try outbox.enqueue(Tap(post: "2", isLike: true), server.operation) } catch { Issue.record(error) }
        }
        let cache = try LarderCache(configuration)
        outbox.withLock { $0 = cache.outbox }
        scene.clock.set(wall: scene.clock.now + .seconds(-3_600))
        try cache.enqueue(Tap(post: "1", isLike: true), server.operation)
        #expect(Set(cache.outbox.entries.map(\.scope)) == ["1", "2"])
    }
}

import Foundation
import LarderResources
import LarderStorage
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// The outbox has a database of its own.
@Suite("Outbox: its own store", .oneMinute)
struct OutboxStoreTests {
    private let scene = CacheScene()

    private func resource(_ id: String) -> Resource<Note> { Resource<Note>.entity(id) { _ in throw Broken() } }

    /// Changes the text of a note; the server answers with the new note.
    private var operation: WriteBehind<String, Note> {
        var operation = WriteBehind<String, Note>(
            "rename",
            scope: { $0 },
            changes: { id, changes in changes.modify(Note.self, id) { $0.text = "new" } },
            send: { attempts in attempts.map { .accepted(Note(id: $0.input, text: "new", revision: 2)) } }
        )
        operation.acknowledge = { _, note, update in update.put(note, lifetime: .seconds(3_600)) }
        return operation
    }

    @Test(arguments: [false, true])
    func `a tap is durable and shown while a commit of content is in progress`(inMemory: Bool) async throws {
        let cache = try scene.cache(inMemory: inMemory)
        try await cache.update { update in
            update.put(Note(id: "1", text: "old", revision: 1), lifetime: .seconds(60))
            update.put(Note(id: "2", text: "old", revision: 1), lifetime: .seconds(60))
        }
        _ = try await cache.value(resource("1"), .cacheOnly)
        let (began, mayEnd, isDone) = (Pending<Bool>(), Hold(), Pending<Bool>())
        // On a thread of its own: on this one nothing else may change the cache before the commit ends.
        Thread.detachNewThread {
            let result = Result {
                try cache.updateBlocking { update in
                    update.modify(Note.self, "2") { note in
                        began.finish(true)
                        mayEnd.wait()
                        note.text = "content"
                    }
                }
            }
            isDone.finish((try? result.get()) != nil)
        }
        #expect(await began.value(ifCancelled: false))
        // The commit waits for this test: without a store of its own the outbox would wait for ever.
        let id = try cache.enqueue("1", operation)
        #expect(cache.outbox.entries.map(\.id) == [id])
        #expect(try await cache.value(resource("1"), .cacheOnly).text == "new")
        mayEnd.open()
        #expect(await isDone.value(ifCancelled: false))
        #expect(try await cache.value(resource("2"), .cacheOnly).text == "content")
        guard !inMemory else { return }
        cache.close()
        #expect(try scene.cache().outbox.entries.map(\.id) == [id])
    }

    @Test func `the outbox survives the removal of the directory of cached values`() async throws {
        let elsewhere = StoreDirectory()
        var configuration = scene.configuration()
        configuration.editStore { settings in
            settings.outboxDirectory = elsewhere.path + "/outbox"
            settings.restartsWhileExists = elsewhere.path + "/outbox/store.lock"
        }
        configuration.operations = [operation]
        let cache = try LarderCache(configuration)
        try await cache.update { $0.put(Note(id: "1", text: "old", revision: 1)) }
        let id = try cache.enqueue("1", operation)
        try FileManager.default.removeItem(atPath: scene.path)
        try cache.enqueue("2", operation)
        try await cache.update { $0.put(Note(id: "3", text: "later", revision: 1)) }
        cache.close()
        let again = try LarderCache(configuration)
        #expect(again.outbox.entries.map(\.scope) == ["1", "2"] && again.outbox.entries.first?.id == id)
        #expect(try again.disk?.entity(Note.key("1")) == nil)
        #expect(try again.disk?.entity(Note.key("3")) != nil)
        try again.erase()
        #expect(elsewhere.files == [] && !FileManager.default.fileExists(atPath: scene.path))
    }

    @Test func `an answer that a power loss has taken from the values makes them stale`() async throws {
        let files = FileManager.default
        func open() throws -> LarderCache {
            var configuration = scene.configuration()
            configuration.operations = [operation]
            return try LarderCache(configuration)
        }
        var cache = try open()
        try await cache.update { $0.put(Note(id: "1", text: "old", revision: 1), lifetime: .seconds(3_600)) }
        try cache.enqueue("1", operation)
        cache.close()
        cache.disk?.suspend()
        let aside = scene.path + "-aside"
        try files.createDirectory(atPath: aside, withIntermediateDirectories: true)
        defer { try? files.removeItem(atPath: aside) }
        let names = try files.contentsOfDirectory(atPath: scene.path).filter { $0.hasPrefix("store.sqlite") }
        for name in names { try files.copyItem(atPath: scene.path + "/" + name, toPath: aside + "/" + name) }
        cache = try open()
        #expect(cache.stored(resource("1"))?.freshness.isFresh == true)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(cache.stored(resource("1"))?.value?.text == "new")
        cache.close()
        cache.disk?.suspend()
        for name in try files.contentsOfDirectory(atPath: scene.path) where name.hasPrefix("store.sqlite") {
            try files.removeItem(atPath: scene.path + "/" + name)
        }
        for name in names { try files.copyItem(atPath: aside + "/" + name, toPath: scene.path + "/" + name) }
        let after = try open()
        #expect(after.outbox.entries.isEmpty)
        let snapshot = after.stored(resource("1"))
        #expect(snapshot?.value?.text == "old" && snapshot?.freshness.isFresh == false)
        after.close()
        // Once is enough: a value that is confirmed again is fresh.
        let last = try open()
        try await last.update { $0.put(Note(id: "1", text: "new", revision: 2), lifetime: .seconds(3_600)) }
        #expect(last.stored(resource("1"))?.freshness.isFresh == true)
        last.close()
        #expect(try open().stored(resource("1"))?.freshness.isFresh == true)
    }

    @Test(arguments: 1...24)
    func `a failure between the answer and the end of its operation sends it again under its key`(_ step: Int)
        async throws
    {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        configuration.random = { 0 }
        let sent = Mutex<[String]>([])
        var operation = operation
        operation.send = { attempts in
            let isFirst = sent.withLock { keys in
                keys += attempts.map(\.idempotencyKey)
                return keys.count == 1
            }
            if isFirst { killable.fail(.inputOutput, atStep: step) }
            return attempts.map { .accepted(Note(id: $0.input, text: "new", revision: 2)) }
        }
        let cache = try LarderCache(configuration)
        cache.outbox.register(operation)
        try await cache.update { $0.put(Note(id: "1", text: "old", revision: 1)) }
        try cache.enqueue("1", operation)
        cache.outbox.resume()
        for _ in 0..<5 where !cache.outbox.entries.isEmpty {
            do { try await cache.outbox.drained() } catch {
                #expect(error.code == .storage)
                // The change is shown, whatever has failed.
                #expect(try await cache.value(resource("1"), .cacheOnly).text == "new")
            }
        }
        #expect(Set(sent.withLock { $0 }).count == 1)
        #expect(try await cache.value(resource("1"), .cacheOnly).text == "new")
        #expect(cache.outbox.entries.isEmpty)
        cache.close()
        configuration.storage = .store(try killable.reopen())
        let again = try LarderCache(configuration)
        #expect(again.outbox.entries.isEmpty)
        #expect(try await again.value(resource("1"), .cacheOnly).text == "new")
    }
}

import Foundation
import LarderEvents
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@Suite("Cache: storage", .oneMinute)
struct CacheStorageTests {
    let scene = CacheScene()

    private func word(_ source: ScriptedSource<String>) -> Resource<String> {
        Resource("word") { try await source.fetch($0) }
    }

    @Test func `a confirmation renews times and writes no payload`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let large = String(repeating: "x", count: 40_000)
        source.prepare(.value(large, validator: "1"), .notModified())
        let resource = word(source)
        let first = try await cache.snapshot(resource)
        let disk = try #require(cache.disk)
        let before = try disk.rowChanges()
        scene.clock.advance(by: .seconds(70))
        let second = try await cache.snapshot(resource)
        #expect(second.source == .network && second.freshness == .fresh)
        #expect(second.fetchedAt == first.fetchedAt && second.validatedAt == scene.clock.now)
        // Written rows: the times of the entity, and once a minute the clock. Neither has a payload.
        #expect(try disk.rowChanges() - before <= 2)
        #expect(try await scene.cache().snapshot(resource, .cacheOnly).validatedAt == scene.clock.now)
    }

    @Test func `a value that was evicted before its confirmation is fetched completely`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("old", validator: "1"))
        _ = try await cache.value(resource)
        scene.clock.advance(by: .seconds(100))
        let reader = Task { try await cache.value(resource) }
        await source.waitForRequests(2)
        try await cache.update { $0.remove(resource.key) }
        source.answer(1, .notModified())
        await source.waitForRequests(3)
        source.answer(2, .value("whole", validator: "2"))
        #expect(try await reader.value == "whole")
        #expect(source.requests.map(\.validator) == [nil, "1", nil])
    }

    @Test func `a value that is gone at the source is removed`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("old"))
        _ = try await cache.value(resource)
        let seen = SequenceRecorder(cache.snapshots(resource, .cacheOnly))
        await seen.wait(for: 1)
        source.prepare(.gone)
        let error = await #expect(throws: LarderError.self) {
            try await cache.value(resource, .networkFirst(timeout: nil))
        }
        #expect(error?.code == .gone)
        await seen.wait { $0.last?.freshness == .missing }
        await #expect(throws: LarderError.self) { try await scene.cache().value(resource, .cacheOnly) }
    }

    @Test func `memory-only values never touch the disk`() async throws {
        let cache = try scene.cache()
        var secret = Resource<String>("secret") { _ in .value("4111-1111-1111-1111") }
        secret.isMemoryOnly = true
        #expect(try await cache.value(secret) == "4111-1111-1111-1111")
        #expect(try await cache.value(secret, .cacheOnly) == "4111-1111-1111-1111")
        for name in try FileManager.default.subpathsOfDirectory(atPath: scene.path) {
            guard let bytes = FileManager.default.contents(atPath: scene.path + "/" + name) else { continue }
            #expect(bytes.range(of: Data("4111-1111".utf8)) == nil, "\(name)")
        }
        await #expect(throws: LarderError.self) { try await scene.cache().value(secret, .cacheOnly) }
    }

    @Test func `a memory-only list stays off the disk when its entities change`() async throws {
        let cache = try scene.cache()
        let notes = ["1", "2"].map { Note(id: $0, text: $0, revision: 1) }
        var secret = Resource<EntityList<Note>>.list("secret-list", of: Note.self) { _ in .value(EntityList(notes)) }
        secret.isMemoryOnly = true
        _ = try await cache.value(secret)
        try await cache.update { $0.remove(Note.self, "1") }
        try await cache.update { $0.put(Note(id: "3", text: "3", revision: 1)) }
        try await cache.update { $0.modify(Note.self, "2") { $0.text = "secret-text" } }
        #expect(try await cache.value(secret, .cacheOnly).items.map(\.id) == ["2"])
        for name in try FileManager.default.subpathsOfDirectory(atPath: scene.path) {
            guard let bytes = FileManager.default.contents(atPath: scene.path + "/" + name) else { continue }
            for secret in ["secret-list", "secret-text"] {
                #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret) in \(name)")
            }
        }
        await #expect(throws: LarderError.self) { try await scene.cache().value(secret, .cacheOnly) }
    }

    @Test func `a value read as another type is a reported miss and stays readable as its own type`() async throws {
        let cache = try scene.cache()
        _ = try await cache.value(Resource<String>("thing") { _ in .value("text") })
        let again = try scene.cache()
        let number = Resource<Int>("thing") { _ in .value(7) }
        await #expect(throws: LarderError.self) { try await again.value(number, .cacheOnly) }
        let reports = scene.events.withLock { events in
            events.compactMap { event -> String? in
                guard case .storageFailed(let error) = event, error.code == .storage else { return nil }
                return error.description
            }
        }
        #expect(reports.contains { $0.contains("\"=thing/\"") })
        _ = try await again.maintain()
        try await again.update { $0.setToken("t", for: "changes") }
        #expect(try await again.value(Resource<String>("thing") { _ in .value("new") }, .cacheOnly) == "text")
        #expect(try await scene.cache().value(Resource<String>("thing") { _ in .value("new") }, .cacheOnly) == "text")
        #expect(try await again.value(number) == 7)
    }

    @Test func `a value of another type provides no validator`() async throws {
        let cache = try scene.cache()
        _ = try await cache.value(Resource<String>("thing") { _ in .value("text", validator: "1") })
        let source = ScriptedSource<Int>()
        source.prepare(.value(7))
        #expect(try await cache.value(Resource<Int>("thing") { try await source.fetch($0) }) == 7)
        #expect(source.requests.map(\.validator) == [nil])
    }

    @Test func `a database that is overwritten while in use loses its values without a crash`() async throws {
        let cache = try scene.cache()
        for index in 0..<200 {
            _ = try await cache.value(Resource<String>("n", ["i": "\(index)"]) { _ in .value("value \(index)") })
        }
        var generator = SeededGenerator(seed: 7)
        let path = scene.path + "/store.sqlite"
        let handle = try #require(FileHandle(forUpdatingAtPath: path))
        let size = try handle.seekToEnd()
        for _ in 0..<40 {
            try handle.seek(toOffset: UInt64(generator.uniform(in: 0..<Int(size))))
            handle.write(Data((0..<64).map { _ in UInt8(truncatingIfNeeded: generator.next()) }))
        }
        try handle.close()
        cache.trimMemory(toBytes: 0)
        var found = 0
        for index in 0..<200 {
            let resource = Resource<String>("n", ["i": "\(index)"]) { _ in .value("value \(index)") }
            if let value = try? await cache.value(resource, .cacheOnly) {
                #expect(value == "value \(index)")
                found += 1
            }
            #expect(try await cache.value(resource) == "value \(index)")
        }
        #expect(found < 200)
        #expect(scene.events.withLock { !$0.isEmpty })
    }

    @Test func `a change that only memory has reaches the disk with the token that covers it`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        try await cache.update { $0.put(Note(id: "1", text: "a", revision: 1)) }
        killable.fail(.full, untilHealed: true)
        await cache.updateIfPossible { $0.put(Note(id: "1", text: "b", revision: 2)) }
        killable.heal()
        // The change feed brings what memory has already.
        try await cache.update { update in
            update.put(Note(id: "1", text: "b", revision: 2))
            update.setToken("t2", for: "feed")
        }
        killable.abandon()
        var next = scene.configuration()
        next.storage = .store(try killable.reopen())
        let note = Resource<Note>.entity("1") { _ in .gone }
        let stored = try LarderCache(next).stored(note)
        #expect(stored?.value?.text == "b" && stored?.version == 2, "\(String(describing: stored))")
    }

    @Test func `a failing disk is reported and readers get their values`() async throws {
        let killable = KillableStore(DiskStore.Configuration(directory: scene.path, clock: scene.clock))
        var configuration = scene.configuration()
        configuration.storage = .store(try killable.store())
        let cache = try LarderCache(configuration)
        let source = ScriptedSource<String>()
        let resource = word(source)
        killable.fail(.full, atStep: 1)
        source.prepare(.value("kept in memory"))
        #expect(try await cache.value(resource) == "kept in memory")
        #expect(try await cache.value(resource, .cacheOnly) == "kept in memory")
        #expect(scene.events.withLock { $0.contains { if case .storageFailed = $0 { true } else { false } } })
        // An operation that must be durable is rejected.
        killable.fail(.full, atStep: 1)
        await #expect(throws: LarderError.self) { try await cache.update { $0.setToken("t", for: "changes") } }
        killable.heal()
        try await cache.update { $0.setToken("t", for: "changes") }
        #expect(try cache.disk?.token("changes") == "t")
    }

    @Test func `erasing during a request removes everything, and the late reply stores nothing`() async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        let resource = word(source)
        source.prepare(.value("old"))
        _ = try await cache.value(resource)
        let seen = SequenceRecorder(cache.snapshots(resource, .cacheAndLoad))
        await source.waitForRequests(2)
        try cache.erase()
        source.answer(1, .value("late"))
        await seen.waitForEnd()
        #expect(!FileManager.default.fileExists(atPath: scene.path))
        let error = await #expect(throws: LarderError.self) { try await cache.value(resource) }
        #expect(error?.code == .closed)
        await #expect(throws: LarderError.self) { try await cache.update { $0.setToken("t", for: "f") } }
    }

    @Test func `two accounts are separate`() async throws {
        let caches = try ["ana", "ben"].map { account in
            var configuration = scene.configuration()
            configuration.storage = .directory(DiskStore.directory(forAccount: account, in: scene.path))
            return try LarderCache(configuration)
        }
        let ana = Resource<String>("me") { _ in .value("ana") }
        _ = try await caches[0].value(ana)
        await #expect(throws: LarderError.self) { try await caches[1].value(ana, .cacheOnly) }
        try caches[0].erase()
        let ben = Resource<String>("me") { _ in .value("ben") }
        #expect(try await caches[1].value(ben) == "ben")
    }

    // MARK: Bad input

    @Test(arguments: [
        "", "\u{0}", "a\u{0}b", "../../etc/passwd", String(repeating: "k", count: 100_000), "🧺", "=x", "a&b=c%",
    ])
    func `keys of any length and content are kept apart`(_ text: String) async throws {
        let cache = try scene.cache()
        let source = ScriptedSource<String>()
        source.prepare(.value("one"), .value("two"), .value("three"))
        let resources = [
            Resource<String>(text, freshness: .reference) { try await source.fetch($0) },
            Resource<String>("n", [text: "v"], freshness: .reference) { try await source.fetch($0) },
            Resource<String>("n", ["p": text], freshness: .reference) { try await source.fetch($0) },
        ]
        for resource in resources { _ = try await cache.value(resource) }
        for (resource, value) in zip(resources, ["one", "two", "three"]) {
            #expect(try await cache.value(resource, .cacheOnly) == value)
        }
    }

    @Test func `a value that cannot be encoded is shown and not stored`() async throws {
        struct Unwritable: Codable, Sendable, Equatable {
            var number: Double
        }
        let cache = try scene.cache()
        let resource = Resource<Unwritable>("nan") { _ in .value(Unwritable(number: .infinity)) }
        #expect(try await cache.value(resource).number == .infinity)
        #expect(
            scene.events.withLock {
                $0.contains { if case .storageFailed(let error) = $0 { error.code == .encoding } else { false } }
            }
        )
        await #expect(throws: LarderError.self) { try await scene.cache().value(resource, .cacheOnly) }
    }

    @Test func `a cache with minimal limits works`() async throws {
        var configuration = scene.configuration()
        configuration.memoryBytesMaximum = -1
        configuration.memoryEntriesMaximum = .min
        configuration.editStore { $0.bytesMaximum = 0 }
        let cache = try LarderCache(configuration)
        let large = String(repeating: "x", count: 1 << 20)
        let resource = Resource<String>("large") { _ in .value(large) }
        #expect(try await cache.value(resource) == large)
        let immediate = Resource<String>("short", freshness: .timeToLive(.seconds(-5))) { _ in .value("x") }
        #expect(try await cache.snapshot(immediate).freshness == .stale(.expired))
        await #expect(throws: LarderError.self) { try await cache.requireValidated(resource, within: .seconds(-1)) }
    }

    @Test func `a removed directory is created again`() async throws {
        let cache = try scene.cache()
        _ = try await cache.value(Resource<String>("a") { _ in .value("1") })
        try FileManager.default.removeItem(atPath: scene.path)
        #expect(try await cache.value(Resource<String>("b") { _ in .value("2") }) == "2")
        #expect(try await cache.value(Resource<String>("b") { _ in .value("2") }, .cacheOnly) == "2")
    }
}

import Foundation
import LarderResources
import LarderStorage
import LarderTesting
import LarderTime
import LarderTransport
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Larder

@Suite("A purgeable directory", .oneMinute)
struct PurgeableDirectoryTests {
    private let state = StoreDirectory()
    private let purgeable = StoreDirectory()
    private let scene = CacheScene()
    private let large = String(repeating: "x", count: 100_000)

    private func client(isPurgeable: Bool = true) async throws -> APIClient {
        var configuration = APIClient.Configuration(transport: ScriptedTransport { _, _ in .text("") })
        configuration.cache = scene.configuration()
        configuration.cache.storage = .memory
        configuration.services = .none
        configuration.purgeableDirectory = isPurgeable ? purgeable.path : nil
        configuration.imageBytesMaximum = 5 << 20
        return try await APIClient(server: "http://server", account: "ana", directory: state.path, configuration)
    }

    private var operation: WriteBehind<String, Bool> {
        WriteBehind("send", scope: { $0 }, changes: { _, _ in }) { attempts in
            attempts.map { _ in .retry(LarderError(.offline, "no network")) }
        }
    }

    private func record(_ key: String) -> DiskRecord {
        DiskRecord(key, payload: [1], recordedAt: scene.clock.now, expiresAt: scene.clock.now + .seconds(60))
    }

    @Test func `cached values and pictures are in the purgeable directory, tokens and operations are not`()
        async throws
    {
        let client = try await client()
        client.cache.outbox.register(operation)
        try await client.cache.update { $0.put(Note(id: "1", text: large)) }
        try client.cache.enqueue("a", operation)
        try await client.session.use(token: "t", userID: "ana")
        let images = try #require(client.images.configuration.disk)
        try images.put(record("picture"))
        #expect(images.configuration.bytesMaximum == 5 << 20)
        #expect(purgeable.files.contains { $0.hasSuffix("images/store.sqlite") })
        #expect(purgeable.files.contains { $0.hasSuffix("data/store.sqlite") })
        #expect(state.files.contains { $0.hasSuffix("outbox/store.sqlite") })
        #expect(!state.files.contains { $0.contains("images") || $0.contains("data") })
        #expect(state.files.contains { $0.hasSuffix("store.secret-session") })
        try await client.signOut()
        #expect(purgeable.files.allSatisfy { $0.hasSuffix("CACHEDIR.TAG") } && state.files == [])
    }

    @Test(arguments: [true, false])
    func `when it is removed, nothing pending is lost, and what was in it is fetched again`(isOpen: Bool) async throws {
        var client = try await client()
        client.cache.outbox.register(operation)
        try await client.cache.update { update in
            update.put(Note(id: "1", text: large))
            update.put(Note(id: "2", text: "small"))
        }
        try client.cache.enqueue("a", operation)
        try await client.session.use(token: "t", userID: "ana")
        try #require(client.images.configuration.disk).put(record("picture"))
        if !isOpen { client.close() }
        try FileManager.default.removeItem(atPath: purgeable.path)
        if !isOpen {
            client = try await self.client()
            client.cache.outbox.register(operation)
        }
        let images = try #require(client.images.configuration.disk)
        let disk = try #require(client.cache.disk)
        #expect(client.cache.outbox.entries.map(\.operation) == ["send"])
        #expect(client.session.state == .signedIn(userID: "ana"))
        // Both are stored again.
        try disk.put(
            DiskEntity(
                Note.key("3"),
                payload: [UInt8](repeating: 1, count: 100_000),
                fetchedAt: scene.clock.now,
                expiresAt: scene.clock.now
            )
        )
        #expect(try disk.entity(Note.key("3")) != nil)
        #expect(try disk.entity(Note.key("1")) == nil && disk.entity(Note.key("2")) == nil)
        try images.put(record("new"))
        #expect(try images.record("new") != nil && images.record("picture") == nil)
        #expect(purgeable.files.contains { $0.hasSuffix("images/store.sqlite") })
        let purges = scene.events.withLock { $0.count { if case .disk(.purged) = $0 { true } else { false } } }
        // That of the pictures, and that of the values.
        #expect(purges == (isOpen ? 2 : 0))
        client.close()
    }

    @Test func `after a sign-out by another process no picture is stored any more`() async throws {
        let first = try await client()
        let second = try await client()
        let images = try #require(first.images.configuration.disk)
        try images.put(record("picture"))
        try await second.signOut()
        #expect(throws: DiskError.self) { try images.put(record("late")) }
        #expect(purgeable.files.allSatisfy { $0.hasSuffix("CACHEDIR.TAG") } && state.files == [])
        first.close()
    }

    @Test func `a sign-out erases what a version without a purgeable directory has stored`() async throws {
        let first = try await client(isPurgeable: false)
        try await first.cache.update { $0.put(Note(id: "1", text: large)) }
        try #require(first.images.configuration.disk).put(record("picture"))
        first.close()
        #expect(state.files.contains { $0.hasSuffix("images/store.sqlite") })
        try await client().signOut()
        #expect(purgeable.files.allSatisfy { $0.hasSuffix("CACHEDIR.TAG") } && state.files == [])
    }

    @Test func `the directory is marked as a cache, which backups leave out`() async throws {
        let client = try await client()
        let tag = try String(contentsOfFile: purgeable.path + "/CACHEDIR.TAG", encoding: .utf8)
        #expect(tag.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
        #expect(!FileManager.default.fileExists(atPath: state.path + "/CACHEDIR.TAG"), "Unsent changes are no cache.")
        client.close()
    }
}

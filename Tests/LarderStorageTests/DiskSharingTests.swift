import Foundation
import LarderStorage
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

/// Two stores on one directory, each with connections of its own, stand for two processes: SQLite's locks work between
/// connections, and nothing of a store is shared in memory.
@Suite("Disk store: shared by processes", .oneMinute)
struct DiskSharingTests {
    private let fixture = DiskFixture()

    @Test func `two processes see each other's commits and share one budget`() throws {
        let one = try fixture.store { $0.bytesMaximum = 10_000 }
        let two = try fixture.store { $0.bytesMaximum = 10_000 }
        for index in 0..<40 {
            let store = index % 2 == 0 ? one : two
            try store.put(fixture.entity("\(index)", [UInt8](repeating: UInt8(index), count: 1_000), version: 1))
            #expect(try one.entity(fixture.key("\(index)")) == two.entity(fixture.key("\(index)")))
            #expect(try one.statistics().bytes == two.statistics().bytes)
        }
        #expect(try one.statistics().bytes <= 10_000)
        #expect(try two.put(fixture.entity("39", version: 0)) == .keptNewer)
    }

    @Test func `emptying the log waits for no reader`() throws {
        let store = try fixture.store { $0.busyTimeout = .seconds(600) }
        try store.put(fixture.entity("1"))
        let isEmptied = try store.read { connection in
            _ = try connection.entity(fixture.key("1"))
            return try store.emptyLog()
        }
        #expect(try !isEmptied && store.emptyLog())
    }

    @Test func `a writer waits at most for the busy timeout, and readers do not wait`() throws {
        let one = try fixture.store()
        let two = try fixture.store()
        try one.put(fixture.entity("1", [1]))
        try one.write { transaction throws in
            try transaction.put(fixture.entity("1", [2]))
            let error = try #require(throws: DiskError.self) { try two.put(fixture.entity("2")) }
            #expect(error.code == .busy)
            #expect(try two.entity(fixture.key("1"))?.payload == [1])
        }
        try two.put(fixture.entity("2"))
        #expect(try one.entity(fixture.key("2")) != nil)
    }

    @Test func `another process notices a replaced file, and no operation is lost`() throws {
        let one = try fixture.store()
        let two = try fixture.store()
        try one.write { transaction throws in
            for index in 0..<50 { try transaction.put(fixture.entity("\(index)")) }
            try transaction.append(DiskOutboxRow(operation: "like", idempotencyKey: "k", payload: [1]))
        }
        #expect(try two.entity(fixture.key("1")) != nil)
        one.suspend()
        two.suspend()
        try fixture.directory.overwrite("store.sqlite", at: 0, with: Array("no database at all".utf8))
        try one.put(fixture.entity("new"))
        #expect(fixture.events.recoveries.count == 1)
        try two.put(fixture.entity("newer"))
        #expect(fixture.events.recoveries.count == 1)
        for store in [one, two] {
            for id in ["new", "newer"] { #expect(try store.entity(fixture.key(id)) != nil) }
            try store.read { transaction throws in #expect(try transaction.outbox().count == 1) }
        }
    }

    @Test func `a writer whose file was replaced under it commits into the new one`() throws {
        let one = try fixture.store()
        let two = try fixture.store()
        try one.put(fixture.entity("1"))
        try two.put(fixture.entity("2"))
        // The second keeps its connections, and the first replaces the file.
        one.suspend()
        let size = fixture.directory.bytes("store.sqlite").count
        try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0xAA, count: min(size, 4_096)))
        let three = try fixture.store()
        try two.put(fixture.entity("3"))
        #expect(try three.entity(fixture.key("3")) != nil)
        #expect(try one.entity(fixture.key("3")) != nil)
    }

    @Test func `data erased by another process is not brought back`() throws {
        let one = try fixture.store()
        let two = try fixture.store()
        try two.put(fixture.entity("1"))
        try one.erase()
        let error = try #require(throws: DiskError.self) { try two.put(fixture.entity("1")) }
        #expect(error.code == .cannotOpen)
        #expect(!FileManager.default.fileExists(atPath: fixture.directory.path))
    }

    @Test func `a store that was erased elsewhere neither reads nor erases the one that is in its place`() throws {
        let (one, two) = (try fixture.store(), try fixture.store())
        try two.erase()
        let next = try fixture.store()
        try next.put(fixture.entity("1"))
        try next.setSecret([1], for: "s")
        one.suspend()
        #expect(throws: DiskError.self) { try one.entity(fixture.key("1")) }
        #expect(throws: DiskError.self) { try one.put(fixture.entity("2")) }
        #expect(throws: DiskError.self) { try one.secret("s") }
        try one.erase()
        try next.put(fixture.entity("3"))
        #expect(try next.entity(fixture.key("1")) != nil && next.secret("s") == [1])
    }

    @Test func `content that the system may remove is not that of the next user, from the first start on`() throws {
        let elsewhere = StoreDirectory()
        func store() throws -> DiskStore {
            let store = try fixture.store {
                $0.outboxDirectory = elsewhere.path + "/outbox"
                $0.restartsWhileExists = elsewhere.path + "/outbox/store.lock"
            }
            _ = try store.outboxStore()
            return store
        }
        let (one, two) = (try store(), try store())
        try two.erase()
        let next = try store()
        try next.put(fixture.entity("1"))
        #expect(throws: DiskError.self) { try one.put(fixture.entity("2")) }
        one.suspend()
        #expect(throws: DiskError.self) { try one.entity(fixture.key("1")) }
        #expect(try next.entity(fixture.key("1")) != nil && next.entity(fixture.key("2")) == nil)
    }

    @Test func `a process that only reads notices a file that another one has replaced`() throws {
        let (one, two) = (try fixture.store(), try fixture.store())
        try one.put(fixture.entity("1"))
        #expect(try one.entity(fixture.key("1")) != nil)
        two.suspend()
        try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0xAA, count: 4_096))
        let three = try fixture.store()
        try three.put(fixture.entity("new"))
        let noted = one.context.foreignCommits.load(ordering: .relaxed)
        try one.checkForeignCommits()
        #expect(one.context.foreignCommits.load(ordering: .relaxed) > noted)
        #expect(try one.entity(fixture.key("new")) != nil && one.entity(fixture.key("1")) == nil)
    }

    @Test func `a read of a replaced file does not replace the new one`() throws {
        let (one, two) = (try fixture.store(), try fixture.store())
        for index in 0..<200 { try one.put(fixture.entity("\(index)", [UInt8](repeating: 1, count: 300))) }
        one.suspend()
        two.suspend()
        #expect(try one.entity(fixture.key("1")) != nil)
        let size = fixture.directory.bytes("store.sqlite").count
        try fixture.directory.overwrite("store.sqlite", at: 4_096, with: [UInt8](repeating: 0xAA, count: size - 4_096))
        try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0xAA, count: 16))
        try two.put(fixture.entity("new"))
        #expect(fixture.events.recoveries.count == 1)
        #expect(try one.entity(fixture.key("150")) == nil)
        #expect(try fixture.events.recoveries.count == 1 && one.entity(fixture.key("new")) != nil)
    }

    @Test func `with many threads every read sees exactly one commit`() async throws {
        let one = try fixture.store { $0.busyTimeout = .seconds(3_600) }
        let two = try fixture.store { $0.busyTimeout = .seconds(3_600) }
        let fixture = self.fixture
        let keys = ["a", "b", "c"].map { fixture.key($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<2 {
                group.addTask {
                    for round in 0..<60 {
                        try (writer == 0 ? one : two).write { transaction throws in
                            for key in keys {
                                try transaction.put(fixture.entity(key.id, [UInt8(round), UInt8(writer)]))
                            }
                        }
                    }
                }
            }
            for reader in 0..<2 {
                group.addTask {
                    for _ in 0..<150 {
                        try (reader == 0 ? one : two).read { transaction throws in
                            let payloads = try keys.map { key throws(DiskError) in try transaction.entity(key)?.payload
                            }
                            #expect(payloads.allSatisfy { $0 == payloads[0] })
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(fixture.events.isEmpty)
    }
}

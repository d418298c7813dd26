import Foundation
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderStorage

@Suite("Disk store", .oneMinute)
struct DiskStoreTests {
    struct Failure: Error {}

    private let fixture = DiskFixture()

    @Test func `identifiers are equal if their bytes are, in memory as on the disk`() throws {
        let (composed, decomposed) = (fixture.key("caf\u{E9}"), fixture.key("cafe\u{301}"))
        #expect(composed != decomposed && Set([composed, decomposed]).count == 2)
        let store = try fixture.store()
        try store.put(fixture.entity(composed.id, [1]))
        try store.put(fixture.entity(decomposed.id, [2]))
        #expect(try store.entity(composed)?.payload == [1])
    }

    @Test func `every stored field is there after reopening`() throws {
        var entity = fixture.entity("1", [0, 255, 7], version: 4, entityTag: "\"a\u{0}b\"", completeness: .partial)
        entity.validatedAt = fixture.clock.now + .seconds(1)
        var query = DiskQuery(
            QueryKey("feed", ["limit": "20", "of": "ana"]),
            ids: [fixture.key("2"), fixture.key("1"), EntityKey(type: "ad", id: "1")],
            isComplete: false,
            entityTag: "\"f\"",
            fetchedAt: fixture.clock.now,
            expiresAt: fixture.clock.now + .seconds(60),
            details: [9, 9]
        )
        let record = fixture.record("any\u{0}thing 😀", [])
        do {
            let store = try fixture.store()
            try store.write { transaction throws in
                try transaction.put(entity)
                try transaction.put(query)
                try transaction.put(record)
                try transaction.setToken("t1", for: "changes")
                try transaction.setMetadata([5], for: "m")
            }
        }
        let store = try fixture.store()
        #expect(try store.entity(entity.key) == entity)
        #expect(try store.record(record.key) == record)
        #expect(try store.token("changes") == "t1")
        #expect(try store.metadata("m") == [5])
        #expect(try store.query(query.key) == query)
        let list = try #require(try store.list(QueryKey("feed", ["of": "ana", "limit": "20"])))
        #expect(list.query == query)
        #expect(list.entities == [nil, entity, nil])
        let names = try store.read { (try $0.entityTypes(), try $0.queryNames()) }
        // A record has no type.
        #expect(names.0 == ["", entity.key.type] && names.1 == ["feed"])
        query.ids = []
        _ = try store.write { transaction throws in try transaction.put(query) }
        #expect(try store.list(query.key)?.entities == [])
        #expect(fixture.events.isEmpty)
    }

    @Test func `a store that opens late creates nothing before its first use, which throws its errors`() throws {
        let directory = StoreDirectory()
        var configuration = DiskStore.Configuration(directory: directory.path, clock: fixture.clock)
        configuration.opensLate = true
        let record = fixture.record("a", [1])
        do {
            let store = try DiskStore(configuration)
            #expect(directory.files.isEmpty)
            #expect(try store.record("a") == nil)
            try store.put(record)
        }
        #expect(try DiskStore(configuration).record("a") == record)
        let erased = try DiskStore(configuration)
        try erased.erase()
        #expect(directory.files.isEmpty)
        let gone = #expect(throws: DiskError.self) { try erased.record("a") }
        #expect(gone?.code == .erased)
        configuration.directory = "/proc/nobody/makes/this"
        let broken = try DiskStore(configuration)
        #expect(throws: DiskError.self) { try broken.record("a") }
    }

    @Test func `keys of any content are distinct`() throws {
        let store = try fixture.store()
        let names = [
            "", "a", "a\u{0}", "a/b", "../../x", "%", "'; DROP TABLE items; --", "é", "e\u{301}", "😀",
            String(repeating: "k", count: 9_000),
        ]
        for (index, name) in names.enumerated() {
            try store.put(fixture.entity(name, [UInt8(index)]))
            try store.put(fixture.record(name, [UInt8(index)]))
        }
        for (index, name) in names.enumerated() {
            #expect(try store.entity(fixture.key(name))?.payload == [UInt8(index)])
            #expect(try store.record(name)?.payload == [UInt8(index)])
        }
        let key = QueryKey("q", [.init("a", "1"), .init("a", "0"), .init("b&c=", "%=&")])
        #expect(QueryKey(name: "q", canonicalParameters: key.canonicalParameters) == key)
        #expect(key == QueryKey("q", [.init("b&c=", "%=&"), .init("a", "0"), .init("a", "1")]))
        let error = try #require(throws: DiskError.self) {
            try store.put(fixture.record(String(repeating: "k", count: 20_000)))
        }
        #expect(error.code == .tooLarge)
    }

    @Test func `an older version never replaces a newer one, nor a partial value a complete one of the same version`()
        throws
    {
        let store = try fixture.store()
        #expect(try store.put(fixture.entity("1", [5], version: 5)) == .stored)
        #expect(try store.put(fixture.entity("1", [4], version: 4)) == .keptNewer)
        #expect(try store.put(fixture.entity("1", [6], version: 5, completeness: .partial)) == .keptMoreComplete)
        #expect(try store.entity(fixture.key("1"))?.payload == [5])
        #expect(try store.put(fixture.entity("1", [7], version: 5)) == .stored)
        #expect(try store.put(fixture.entity("1", [8], version: 6, completeness: .partial)) == .stored)
        #expect(try store.entity(fixture.key("1"))?.payload == [8])
        let large = [UInt8](repeating: 1, count: 100_000)
        #expect(try store.put(fixture.entity("1", large, version: 2)) == .keptNewer)
    }

    @Test func `an entity deleted in a version stays deleted until a newer version is stored`() throws {
        let store = try fixture.store()
        try store.put(fixture.entity("1", version: 5))
        try store.write { transaction throws in
            #expect(try !transaction.bury(fixture.key("1"), version: 4))
            #expect(try transaction.bury(fixture.key("1"), version: 6))
            try transaction.removeValue(fixture.key("1"))
        }
        #expect(try store.entity(fixture.key("1")) == nil)
        #expect(try store.put(fixture.entity("1", version: 6)) == .keptNewer)
        #expect(try store.put(fixture.entity("1")) == .keptNewer)
        #expect(try store.put(fixture.entity("1", [7], version: 7)) == .stored)
        #expect(try store.entity(fixture.key("1"))?.payload == [7])
    }

    @Test func `a 304 renews the times in one row and rewrites nothing else`() throws {
        let store = try fixture.store()
        let entity = fixture.entity("1", [UInt8](repeating: 3, count: 20_000), version: 2, entityTag: "\"a\"")
        try store.put(entity)
        try store.write { transaction throws in try transaction.invalidate(.entity(entity.key)) }
        #expect(try store.entity(entity.key)?.isInvalidated == true)
        let before = try store.rowChanges()
        fixture.clock.advance(by: .seconds(300))
        let now = fixture.clock.now
        func touch(_ key: EntityKey, _ lifetime: Duration, _ tag: String?) throws -> Bool {
            let times = RowTimes(fetchedAt: now, expiresAt: now + lifetime)
            return try store.write { try $0.touch(.entity(key), times, ifEntityTag: tag) != nil }
        }
        #expect(try touch(entity.key, .seconds(60), "\"a\""))
        let stored = try #require(try store.entity(entity.key))
        #expect(!stored.isInvalidated)
        #expect(try store.rowChanges() - before == 1)
        var renewed = entity
        renewed.validatedAt = now
        renewed.expiresAt = now + .seconds(60)
        (renewed.asked, renewed.invalid) = (stored.asked, stored.invalid)
        #expect(try store.entity(entity.key) == renewed)
        #expect(try !touch(entity.key, .zero, "\"b\""))
        #expect(try !touch(fixture.key("2"), .zero, nil))
        #expect(try store.entity(entity.key) == renewed)
    }

    @Test func `a transaction that throws stores nothing`() throws {
        let store = try fixture.store()
        let large = [UInt8](repeating: 1, count: 100_000)
        #expect(throws: Failure.self) {
            try store.write { transaction throws in
                try transaction.put(fixture.entity("1", large))
                try transaction.setToken("t", for: "changes")
                #expect(try transaction.entity(fixture.key("1")) != nil)
                throw Failure()
            }
        }
        #expect(try store.entity(fixture.key("1")) == nil)
        #expect(try store.token("changes") == nil)
        #expect(try store.statistics().items == 0)
    }

    @Test func `a read does not wait for the writer, and sees only what is committed`() throws {
        let store = try fixture.store()
        try store.put(fixture.entity("1", [1]))
        try store.write { transaction throws in
            try transaction.put(fixture.entity("1", [2]))
            // On this thread: if it waited, it would wait for ever.
            #expect(try store.entity(fixture.key("1"))?.payload == [1])
        }
        #expect(try store.entity(fixture.key("1"))?.payload == [2])
        try store.read { transaction throws in
            #expect(try transaction.entity(fixture.key("1"))?.payload == [2])
            try store.put(fixture.entity("1", [3]))
            #expect(try transaction.entity(fixture.key("1"))?.payload == [2])
        }
    }

    @Test func `lists are found by entity, and a list is invalidated by key`() throws {
        let store = try fixture.store()
        let (one, two) = (QueryKey("feed", ["of": "ana"]), QueryKey("feed", ["of": "ben"]))
        try store.write { transaction throws in
            for key in [one, two] {
                try transaction.put(
                    DiskQuery(
                        key,
                        ids: [fixture.key("1"), fixture.key(key == one ? "2" : "3")],
                        isComplete: true,
                        fetchedAt: fixture.clock.now,
                        expiresAt: fixture.clock.now + .seconds(60)
                    )
                )
            }
        }
        try store.read { transaction throws in
            #expect(try transaction.queries(with: fixture.key("1")) == [one, two])
            #expect(try transaction.queries(with: fixture.key("2")) == [one])
            #expect(try transaction.queryKeys(named: "feed") == [one, two])
        }
        try store.write { transaction throws in
            try transaction.invalidate(.query(two))
        }
        #expect(try store.query(one)?.isInvalidated == false)
        #expect(try store.query(two)?.isInvalidated == true)
        var confirmed = try #require(try store.query(two))
        confirmed.asked = confirmed.invalid
        try store.write { transaction throws in
            try transaction.touch(&confirmed)
            try transaction.remove(.query(one))
        }
        #expect(try store.query(two)?.isInvalidated == false)
        #expect(try store.query(one) == nil)
        try store.read { transaction throws in #expect(try transaction.queries(with: fixture.key("2")) == []) }
    }

    @Test func `files are private, and an erased store has no files and rejects writes`() throws {
        let parent = StoreDirectory()
        let path = DiskStore.directory(forAccount: "../ana", in: parent.path)
        #expect(path.hasPrefix(parent.path + "/") && !path.contains(".."))
        var configuration = fixture.configuration()
        configuration.directory = path
        let store = try DiskStore(configuration)
        try store.put(fixture.entity("1", [UInt8](repeating: 1, count: 100_000)))
        #expect(try store.entity(fixture.key("1")) != nil)
        let paths = parent.files
        #expect(paths.contains { $0.hasSuffix("store.sqlite-wal") })
        for path in paths {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(parent.path)/\(path)")
            let isDirectory = attributes[.type] as? FileAttributeType == .typeDirectory
            #expect(attributes[.posixPermissions] as? Int == (isDirectory ? 0o700 : 0o600), "\(path)")
        }
        try store.erase()
        #expect(parent.files.isEmpty)
        for call in [{ _ = try store.entity(fixture.key("1")) }, { try store.put(fixture.entity("1")) }] {
            let error = try #require(throws: DiskError.self) { try call() }
            #expect(error.code == .erased)
        }
        #expect(parent.files.isEmpty)
        try store.erase()
    }

    @Test func `erasing a store that has not opened its outbox erases the outbox too`() throws {
        let parent = StoreDirectory()
        var configuration = fixture.configuration()
        configuration.directory = parent.path + "/store"
        let other = try DiskStore(configuration)
        try other.put(fixture.entity("1"))
        _ = try other.outboxStore()
        #expect(parent.files.contains { $0.contains("outbox/store.sqlite") })
        try DiskStore(configuration).erase()
        #expect(parent.files.isEmpty, "\(parent.files)")
    }

    @Test func `a directory that others use keeps its mode, and the store's files are private all the same`() throws {
        let path = fixture.directory.path
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o755]
        )
        try Data([1]).write(to: URL(fileURLWithPath: path + "/notes.txt"))
        _ = try fixture.store()
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o755)
        let mode = try FileManager.default.attributesOfItem(atPath: fixture.directory.database)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test func `erasing keeps files of other programs`() throws {
        let store = try fixture.store()
        try Data([1]).write(to: URL(fileURLWithPath: fixture.directory.path + "/notes.txt"))
        try store.erase()
        #expect(fixture.directory.files == ["notes.txt"])
    }

    @Test func `operations of the outbox keep their order and their numbers`() throws {
        let store = try fixture.store()
        let rows = (1...3).map {
            DiskOutboxRow(
                operation: "like",
                scope: "s",
                coalescingKey: nil,
                idempotencyKey: "k\($0)",
                payload: [UInt8($0)]
            )
        }
        let numbers = try store.write(.powerLoss) { transaction throws in
            try rows.map { row throws(DiskError) in try transaction.append(row) }
        }
        #expect(numbers == [1, 2, 3])
        try store.write { transaction throws in
            try transaction.removeOperation(3)
            var second = try #require(try transaction.outbox(after: 1).first)
            second.attempts = 2
            second.state = 1
            try transaction.update(second)
            #expect(try transaction.append(rows[2]) == 4)
        }
        try store.read { transaction throws in
            let outbox = try transaction.outbox()
            #expect(outbox.map(\.sequence) == [1, 2, 4])
            #expect(outbox[1].attempts == 2 && outbox[1].payload == [2])
            #expect(try transaction.outbox(after: 1, limit: 1).map(\.sequence) == [2])
        }
        try store.removeAllItems()
        try store.read { transaction throws in #expect(try transaction.outbox().count == 3) }
    }
}

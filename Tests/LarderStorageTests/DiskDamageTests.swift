import Foundation
import Glibc
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderStorage

/// Files are overwritten, truncated and removed. No call traps, and no read returns a value that was not stored.
@Suite("Disk store: damage", .oneMinute)
struct DiskDamageTests {
    private static let count = 200

    private func payload(_ index: Int) -> [UInt8] { (0..<300).map { UInt8(truncatingIfNeeded: $0 &* index &+ index) } }

    /// A store with entities, a list, a token and an outbox.
    private func fill(_ fixture: DiskFixture) throws -> DiskStore {
        let store = try fixture.store()
        try store.write { transaction throws in
            for index in 0..<3 {
                try transaction.append(
                    DiskOutboxRow(operation: "o", idempotencyKey: "\(index)", payload: [UInt8(index)])
                )
            }
            for index in 0..<Self.count { try transaction.put(fixture.entity("\(index)", payload(index), version: 1)) }
            try transaction.put(
                DiskQuery(
                    QueryKey("feed"),
                    ids: (0..<Self.count).map { fixture.key("\($0)") },
                    isComplete: true,
                    fetchedAt: fixture.clock.now,
                    expiresAt: fixture.clock.now + .seconds(60)
                )
            )
            try transaction.setToken("t", for: "changes")
            try transaction.setMetadata([7], for: "app")
        }
        return store
    }

    /// Reads and writes everything. Each read is the stored value or a miss, and afterwards the store works.
    ///
    /// - Returns: the number of remaining entities.
    private func use(_ store: DiskStore, _ fixture: DiskFixture, _ comment: Comment) throws -> Int {
        var left = 0
        for index in 0..<Self.count {
            guard let entity = try store.entity(fixture.key("\(index)")) else { continue }
            #expect(entity.payload == payload(index), comment)
            left += 1
        }
        if let list = try store.list(QueryKey("feed")) {
            #expect(list.query.ids == (0..<Self.count).map { fixture.key("\($0)") }, comment)
            for (index, entity) in list.entities.enumerated() {
                if let entity { #expect(entity.payload == payload(index), comment) }
            }
        }
        let token = try store.token("changes")
        #expect(token == nil || token == "t", comment)
        let outbox = try store.read { transaction throws in try transaction.outbox() }
        #expect(outbox.allSatisfy { $0.payload == [UInt8($0.sequence - 1)] }, comment)
        // Undetected damage may still lose rows that are written beside it.
        for version in [2, 3] as [Int64] {
            for index in 0..<Self.count { try store.put(fixture.entity("\(index)", payload(index), version: version)) }
            for index in 0..<Self.count {
                guard let entity = try store.entity(fixture.key("\(index)")) else { continue }
                #expect(entity.payload == payload(index), comment)
            }
            while try !store.maintain() {}
        }
        for index in 0..<Self.count { try store.put(fixture.entity("\(index)", payload(index), version: 4)) }
        for index in 0..<Self.count {
            #expect(try store.entity(fixture.key("\(index)"))?.version == 4, comment)
        }
        return left
    }

    private func random(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    @Test(arguments: seeds(10))
    func `random bytes over any part during use lose no operation and give no wrong value`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let fixture = DiskFixture()
        let store = try fill(fixture)
        // In half of the runs the pages are in the log, in the others in the file.
        if generator.next() % 2 == 0 { store.suspend() }
        _ = try store.entity(fixture.key("1"))
        for name in ["store.sqlite", "store.sqlite-wal"] {
            let size = fixture.directory.bytes(name).count
            guard size > 0 else { continue }
            for _ in 0..<generator.uniform(in: 1..<12) {
                let start = generator.uniform(in: 0..<size)
                let count = min(size - start, generator.uniform(in: 1..<5_000))
                try fixture.directory.overwrite(name, at: start, with: random(count, &generator))
            }
        }
        _ = try use(store, fixture, "seed \(seed)")
        store.suspend()
        _ = try use(store, fixture, "seed \(seed), opened anew")
        #expect(fixture.directory.setAside.count <= 1)
    }

    @Test(arguments: [0, 15, 100, 4_095, 4_096, 4_097, 40_000, 70_000])
    func `a database truncated at any length is rebuilt, during use and at a start`(_ length: Int) throws {
        for isOpen in [true, false] {
            let fixture = DiskFixture()
            let store = try fill(fixture)
            store.suspend()
            if isOpen { _ = try store.entity(fixture.key("1")) }
            #expect(fixture.directory.bytes("store.sqlite").count > 70_000)
            try fixture.directory.truncate("store.sqlite", to: length)
            let again = isOpen ? store : try fixture.store()
            _ = try use(again, fixture, "cut to \(length), open: \(isOpen)")
            #expect(!fixture.events.recoveries.isEmpty, "cut to \(length), open: \(isOpen)")
        }
    }

    @Test(arguments: [1, 17, 4_000, 30_000])
    func `a truncated log loses only the commits after the cut`(_ length: Int) throws {
        let fixture = DiskFixture()
        let killable = KillableStore(fixture.configuration())
        try killable.store().put(fixture.entity("1", version: 1))
        killable.abandon()
        try fixture.directory.truncate("store.sqlite-wal", to: length)
        let store = try killable.reopen()
        let entity = try store.entity(fixture.key("1"))
        #expect(entity == nil || entity == fixture.entity("1", version: 1))
        try store.put(fixture.entity("1", version: 2))
        #expect(try store.entity(fixture.key("1"))?.version == 2)
    }

    @Test(arguments: [16, 100, 4_096])
    func `an overwritten first page is rebuilt, and all operations and metadata are saved`(_ count: Int) throws {
        let fixture = DiskFixture()
        do { _ = try fill(fixture) }
        try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0x41, count: count))
        let store = try fixture.store()
        let recovery = try #require(fixture.events.recoveries.first)
        #expect(recovery.reason == .notADatabase)
        #expect(recovery.outboxSaved == 3 && recovery.isOutboxWhole)
        #expect(recovery.setAside == fixture.directory.path + "/" + fixture.directory.setAside[0])
        #expect(try store.metadata("app") == [7] && store.token("changes") == nil)
        #expect(try use(store, fixture, "first page") == 0)
    }

    @Test(arguments: [false, true])
    func `a database with a damaged schema is read by the known root pages`(_ isOpen: Bool) throws {
        let fixture = DiskFixture()
        var store: DiskStore? = try fill(fixture)
        store?.suspend()
        if !isOpen { store = nil }
        // An empty schema (§1.6 of SQLite's file format): the file is sound, and there is no table.
        try fixture.directory.overwrite("store.sqlite", at: 100, with: [0x0D, 0, 0, 0, 0, 0x10, 0, 0])
        let again = try store ?? fixture.store()
        #expect(try again.metadata("app") == [7])
        let recovery = try #require(fixture.events.recoveries.first)
        #expect(recovery.outboxSaved == 3 && recovery.isOutboxWhole)
        #expect(try use(again, fixture, "no schema") == 0)
    }

    @Test func `a write that replaces a damaged file is seen by reads that began on the old one`() throws {
        let fixture = DiskFixture()
        let store = try fill(fixture)
        store.suspend()
        // Opened before the writing connection, which finds the damage.
        #expect(try store.entity(fixture.key("1"))?.version == 1)
        try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0x41, count: 100))
        try store.put(fixture.entity("1", payload(1), version: 2))
        #expect(try store.entity(fixture.key("1"))?.version == 2)
        #expect(try store.entity(fixture.key("2")) == nil)
        #expect(fixture.events.recoveries.count == 1)
    }

    @Test func `a store whose directory was removed while it was suspended is read anew`() throws {
        let fixture = DiskFixture()
        let other = StoreDirectory()
        try FileManager.default.createDirectory(atPath: other.path, withIntermediateDirectories: true)
        let store = try fixture.store { $0.restartsWhileExists = other.path }
        try store.put(fixture.entity("1"))
        store.suspend()
        #expect(try store.entity(fixture.key("1")) != nil)
        try FileManager.default.removeItem(atPath: fixture.directory.path)
        try store.put(fixture.entity("new"))
        #expect(try store.entity(fixture.key("new")) != nil && store.entity(fixture.key("1")) == nil)
    }

    @Test func `a changed byte in a payload is detected by the checksum`() throws {
        let fixture = DiskFixture()
        let store = try fill(fixture)
        store.suspend()
        let bytes = fixture.directory.bytes("store.sqlite")
        let needle = payload(5)
        let start = try #require((0..<(bytes.count - 300)).first { bytes[$0..<($0 + 300)].elementsEqual(needle) })
        try fixture.directory.overwrite("store.sqlite", at: start + 50, with: [bytes[start + 50] ^ 1])
        for _ in 0..<2 { #expect(try store.entity(fixture.key("5")) == nil) }
        #expect(fixture.events.discarded == [fixture.key("5").description])
        #expect(fixture.events.reasons == ["checksum"])
        let items = try store.statistics().items
        _ = try store.maintain()
        #expect(try store.statistics().items == items - 1)
        try store.put(fixture.entity("5"))
        #expect(try store.entity(fixture.key("5")) != nil)
    }

    @Test func `an empty file counts as a vanished database`() throws {
        let fixture = DiskFixture()
        do { _ = try fill(fixture) }
        try fixture.directory.truncate("store.sqlite", to: 0)
        let store = try fixture.store()
        #expect(fixture.events.recoveries.map(\.reason) == [.vanished])
        #expect(try use(store, fixture, "empty") == 0)
    }

    @Test func `a file removed while in use is recreated by the next write`() throws {
        let fixture = DiskFixture()
        let store = try fill(fixture)
        for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
            try FileManager.default.removeItem(atPath: "\(fixture.directory.path)/\(name)")
        }
        try store.put(fixture.entity("new"))
        #expect(fixture.events.recoveries.map(\.reason) == [.vanished])
        #expect(try store.entity(fixture.key("new")) != nil)
        #expect(try fixture.store().entity(fixture.key("new")) != nil)
    }

    @Test func `a directory removed while in use is a typed error, and a new store works`() throws {
        let fixture = DiskFixture()
        let store = try fill(fixture)
        try FileManager.default.removeItem(atPath: fixture.directory.path)
        let error = try #require(throws: DiskError.self) { try store.put(fixture.entity("new")) }
        #expect(error.code == .cannotOpen)
        let again = try fixture.store()
        try again.put(fixture.entity("new"))
        #expect(try again.entity(fixture.key("new")) != nil)
    }

    @Test func `files of a newer program and of another application are rejected and unchanged`() throws {
        let fixture = DiskFixture()
        do { _ = try fixture.store() }
        try fixture.directory.overwrite("store.sqlite", at: 60, with: [0, 0, 0, 99])
        let before = fixture.directory.bytes("store.sqlite")
        let newer = try #require(throws: DiskError.self) { try fixture.store() }
        #expect(newer.code == .newerSchema)
        #expect(fixture.directory.bytes("store.sqlite") == before)

        // An empty database (§1.3 of SQLite's file format) with an application's number.
        var page = [UInt8](repeating: 0, count: 4_096)
        page.replaceSubrange(0..<16, with: Array("SQLite format 3\u{0}".utf8))
        page.replaceSubrange(16..<24, with: [0x10, 0, 1, 1, 0, 64, 32, 32])
        page.replaceSubrange(24..<32, with: [0, 0, 0, 1, 0, 0, 0, 1])
        page.replaceSubrange(44..<48, with: [0, 0, 0, 4])
        page.replaceSubrange(56..<60, with: [0, 0, 0, 1])
        page.replaceSubrange(68..<72, with: [1, 2, 3, 4])
        page.replaceSubrange(92..<96, with: [0, 0, 0, 1])
        page.replaceSubrange(100..<108, with: [0x0D, 0, 0, 0, 0, 0x10, 0, 0])
        try Data(page).write(to: URL(fileURLWithPath: fixture.directory.database))
        let foreign = try #require(throws: DiskError.self) { try fixture.store() }
        #expect(foreign.code == .foreignFile)
        #expect(fixture.directory.setAside.isEmpty && fixture.events.isEmpty)
    }

    @Test func `a full disk fails writes, keeps stored data, and works again with free space`() throws {
        let fixture = DiskFixture()
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        try store.put(fixture.entity("1", [1]))
        #expect(try store.entity(fixture.key("1")) != nil)
        killable.fail(.full, untilHealed: true)
        for _ in 0..<3 {
            let error = try #require(throws: DiskError.self) { try store.put(fixture.entity("1", [2])) }
            #expect(error.code == .full)
            #expect(try store.entity(fixture.key("1"))?.payload == [1])
        }
        killable.heal()
        try store.put(fixture.entity("1", [2]))
        #expect(try store.entity(fixture.key("1"))?.payload == [2])
        #expect(fixture.events.isEmpty)
    }

    @Test func `a transaction whose error was caught is not committed`() throws {
        let fixture = DiskFixture()
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        try store.put(fixture.entity("1", [1]))
        for step in 1...8 {
            for failure in [KillableStore.Failure.full, .inputOutput] {
                let error = try #require(throws: DiskError.self) {
                    try store.write { transaction throws in
                        try transaction.setToken("t", for: "changes")
                        killable.fail(failure, atStep: step)
                        for id in ["1", "2", "3", "4"] {
                            do { try transaction.put(fixture.entity(id, [2])) } catch { continue }
                        }
                    }
                }
                #expect(error.code == (failure == .full ? .full : .inputOutput))
                killable.heal()
                #expect(try store.entity(fixture.key("1"))?.payload == [1])
                #expect(try store.entity(fixture.key("4")) == nil && store.token("changes") == nil)
            }
        }
        #expect(fixture.events.isEmpty)
    }

    @Test func `a file that temporarily cannot be opened is not treated as damaged`() throws {
        let fixture = DiskFixture()
        let killable = KillableStore(fixture.configuration())
        let store = try killable.store()
        try store.put(fixture.entity("1", [1]))
        // The first read opens a connection of its own.
        killable.fail(.inputOutput)
        let error = try #require(throws: DiskError.self) { try store.entity(fixture.key("1")) }
        #expect(error.code == .cannotOpen)
        #expect(try store.entity(fixture.key("1"))?.payload == [1])
        #expect(fixture.events.isEmpty && fixture.directory.setAside.isEmpty)
    }

    @Test func `a disk too full to replace a damaged database says so, and the damaged one stays`() throws {
        let fixture = DiskFixture()
        do { _ = try fill(fixture) }
        try fixture.directory.overwrite("store.sqlite", at: 0, with: [0])
        let killable = KillableStore(fixture.configuration())
        killable.fail(.full, untilHealed: true)
        let error = try #require(throws: DiskError.self) { try killable.store() }
        #expect(error.code == .full)
        killable.heal()
        let store = try killable.store()
        #expect(try store.metadata("app") == [7])
        #expect(try use(store, fixture, "room again") == 0)
    }

    @Test func `an impossible directory is a typed error`() throws {
        let fixture = DiskFixture()
        let inside = fixture.directory.path + "/"
        for path in [
            "/dev/null/store", "/proc/larder-store", inside + String(repeating: "x", count: 5_000), inside + "a\u{0}b",
        ] {
            let error = try #require(throws: DiskError.self) {
                try DiskStore(DiskStore.Configuration(directory: path, clock: ManualClock()))
            }
            #expect([.cannotOpen, .readOnly].contains(error.code), "\(path.prefix(20)): \(error)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: inside) == [])
    }

    @Test func `a read-only directory is a typed error, empty or with a store`() throws {
        let fixture = DiskFixture()
        do { try fixture.store().put(fixture.entity("1")) }
        // The superuser may write everywhere, so this thread acts as the user `nobody` meanwhile.
        guard let symbol = unsafe dlsym(nil, "setfsuid") else { return }
        let setfsuid = unsafe unsafeBitCast(symbol, to: (@convention(c) (UInt32) -> Int32).self)
        let isSuperuser = geteuid() == 0
        unsafe chmod(fixture.directory.path, 0o755)
        if isSuperuser { _ = setfsuid(65_534) } else { unsafe chmod(fixture.directory.path, 0o500) }
        defer { if isSuperuser { _ = setfsuid(0) } else { unsafe chmod(fixture.directory.path, 0o700) } }
        for name in ["", "/inside"] {
            var configuration = fixture.configuration()
            configuration.directory += name
            let error = try #require(throws: DiskError.self) { try DiskStore(configuration) }
            #expect(error.code == .readOnly, "\(error)")
            #expect(error.description.contains("needs write access, also to read"), "\(error)")
        }
    }
}

import Foundation
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderStorage

/// The database or its log is missing at a start: the rows of the other file are saved, and an event reports the loss.
@Suite("Disk store: database or log gone at a start", .oneMinute)
struct DiskLogTests {
    private let fixture = DiskFixture()

    private func append(_ range: Range<Int>, to store: DiskStore) throws {
        for index in range {
            _ = try store.write { transaction throws in
                try transaction.append(
                    DiskOutboxRow(
                        operation: "o",
                        idempotencyKey: "\(index)",
                        payload: [UInt8](repeating: 7, count: 300)
                    )
                )
            }
        }
    }

    private func keys(_ store: DiskStore) throws -> [String] {
        try store.read { transaction throws in try transaction.outbox(limit: 10_000).map(\.idempotencyKey) }
    }

    @Test(arguments: [false, true])
    func `every operation in the log of a missing database is saved`(_ isEmptied: Bool) throws {
        let killable = KillableStore(fixture.configuration())
        try killable.store().put(fixture.entity("1", version: 1))
        try append(0..<225, to: killable.store())
        killable.abandon()
        if isEmptied {
            try fixture.directory.truncate("store.sqlite", to: 0)
        } else {
            try FileManager.default.removeItem(atPath: fixture.directory.database)
        }
        let store = try killable.reopen()
        let recovery = try #require(fixture.events.recoveries.first)
        #expect(fixture.events.recoveries.count == 1 && recovery.reason == .vanished)
        #expect(recovery.outboxSaved == 225 && !recovery.isOutboxWhole)
        #expect(try keys(store) == (0..<225).map { "\($0)" })
        // The content of the log is kept as a database.
        #expect(FileManager.default.fileExists(atPath: try #require(recovery.setAside)))
    }

    @Test func `rows of a lost database are missing, and an event reports the loss`() throws {
        let killable = KillableStore(fixture.configuration())
        try append(0..<300, to: killable.store())
        try killable.store().suspend()
        try append(300..<500, to: killable.store())
        killable.abandon()
        try FileManager.default.removeItem(atPath: fixture.directory.database)
        let store = try killable.reopen()
        let recovery = try #require(fixture.events.recoveries.first)
        #expect(recovery.reason == .vanished && !recovery.isOutboxWhole)
        let saved = try keys(store)
        #expect(recovery.outboxSaved == saved.count)
        // The first page in the log also has the rows of the database page that it continues.
        #expect(Set(saved).isSuperset(of: (300..<500).map { "\($0)" }))
        try append(500..<501, to: store)
        #expect(try keys(store).last == "500")
    }

    @Test func `a directory with only a log without database pages is opened and reported`() throws {
        do { try append(0..<3, to: fixture.store()) }
        try FileManager.default.removeItem(atPath: fixture.directory.database)
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: fixture.directory.database + "-wal"))
        let store = try fixture.store()
        #expect(fixture.events.recoveries.map(\.outboxSaved) == [0])
        #expect(try keys(store).isEmpty)
        try append(0..<1, to: store)
    }

    @Test func `a missing log is reported, and the last checkpoint is kept`() throws {
        let killable = KillableStore(fixture.configuration())
        try append(0..<30, to: killable.store())
        try killable.store().suspend()
        try append(30..<40, to: killable.store())
        killable.abandon()
        try FileManager.default.removeItem(atPath: fixture.directory.database + "-wal")
        let store = try killable.reopen()
        let recovery = try #require(fixture.events.recoveries.first)
        #expect(recovery.reason == .corrupt && recovery.outboxSaved == 30 && !recovery.isOutboxWhole)
        #expect(try keys(store) == (0..<30).map { "\($0)" })
    }

    @Test func `a store that was closed properly has no log, and nothing is reported`() throws {
        for _ in 0..<3 { try append(0..<3, to: fixture.store()) }
        let store = try fixture.store()
        store.suspend()
        try append(3..<4, to: store)
        #expect(fixture.events.isEmpty)
    }

    @Test func `a process that dies while it replaces a missing database loses nothing from the log`() throws {
        var step = 0
        var isDone = false
        while !isDone {
            step += 1
            let fixture = DiskFixture()
            let killable = KillableStore(fixture.configuration())
            try append(0..<20, to: killable.store())
            killable.abandon()
            try FileManager.default.removeItem(atPath: fixture.directory.database)
            killable.kill(atStep: step)
            do {
                _ = try killable.store()
                isDone = !killable.isDead
            } catch {
                #expect(killable.isDead, "step \(step)")
            }
            let store = try killable.reopen()
            #expect(try keys(store) == (0..<20).map { "\($0)" }, "step \(step)")
            #expect(!fixture.events.recoveries.isEmpty, "step \(step)")
        }
        #expect(step > 30)
    }

    @Test func `sequence numbers used before a replacement are not used again`() throws {
        var store: DiskStore? = try fixture.store()
        let last = try #require(
            try store?.write { transaction throws in
                try transaction.append(DiskOutboxRow(operation: "o", idempotencyKey: "1", payload: []))
            }
        )
        try store?.write { transaction throws in try transaction.removeOperation(last) }
        for _ in 0..<2 {
            store = nil
            try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0, count: 80_000))
            store = try fixture.store()
            fixture.clock.advance(by: .seconds(1))
            let number = try store?.write { transaction throws in
                try transaction.append(DiskOutboxRow(operation: "o", idempotencyKey: "2", payload: []))
            }
            #expect(try #require(number) > last)
        }
    }
}

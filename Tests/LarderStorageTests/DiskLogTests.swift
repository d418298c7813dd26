import Foundation
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderStorage

/// The database is missing at a start: an event reports the loss.
@Suite("Disk store: database gone at a start", .oneMinute)
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

    @Test func `a directory with only a log without database pages is opened and reported`() throws {
        do { try append(0..<3, to: fixture.store()) }
        try FileManager.default.removeItem(atPath: fixture.directory.database)
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: fixture.directory.database + "-wal"))
        let store = try fixture.store()
        #expect(fixture.events.recoveries.map(\.outboxSaved) == [0])
        #expect(try keys(store).isEmpty)
        try append(0..<1, to: store)
    }

    @Test func `a store that was closed properly has no log, and nothing is reported`() throws {
        for _ in 0..<3 { try append(0..<3, to: fixture.store()) }
        let store = try fixture.store()
        store.suspend()
        try append(3..<4, to: store)
        #expect(fixture.events.isEmpty)
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

import FileFaults
import Foundation
import LarderResources
import LarderSQLite
import LarderStorage
import LarderTesting
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

private struct Report: Codable, Sendable, Equatable {
    var number: Int
    var text: String
}

/// The numbers that a server has received, in order.
private final class Received: Sendable {
    private let state = Mutex<[Int]>([])

    var numbers: [Int] { state.withLock { $0 } }

    func note(_ number: Int) { state.withLock { $0.append(number) } }
}

/// The outbox has filled the disk: waiting operations are sent, and no operation is acknowledged before.
@Suite("Outbox: a full disk", .oneMinute)
struct OutboxFullDiskTests {
    private let scene = CacheScene()
    private let received = Received()

    private func operation(batch: Int = 1, textBack: Int = 0) -> WriteBehind<Report, Note> {
        var operation = WriteBehind<Report, Note>("report", scope: { _ in "all" }, changes: { _, _ in }) {
            [received] attempts in
            attempts.map { attempt in
                received.note(attempt.input.number)
                let text = String(repeating: "y", count: textBack)
                return .accepted(Note(id: "\(attempt.input.number)", text: text, revision: 1))
            }
        }
        operation.batchMaximum = batch
        operation.acknowledge = { _, note, update in update.put(note) }
        return operation
    }

    private func cache(_ faults: FaultPlan, reserve: Int64 = 6 << 20) throws -> LarderCache {
        var configuration = scene.configuration()
        configuration.editStore { $0.faults = faults }
        configuration.editStore { $0.outboxReserveBytes = reserve }
        return try LarderCache(configuration)
    }

    /// Enqueues reports until the disk is full. Returns the number of acknowledged ones.
    private func fill(_ cache: LarderCache, _ operation: WriteBehind<Report, Note>, from first: Int = 0) throws -> Int {
        for number in first..<1_000_000 {
            do {
                try cache.enqueue(Report(number: number, text: String(repeating: "x", count: 4_000)), operation)
            } catch {
                #expect(error.code == .storage && (error.cause as? DiskError)?.code == .full, "\(error)")
                return number
            }
        }
        return 1_000_000
    }

    @Test(arguments: [8, 12, 20] as [Int64])
    func `an outbox on a full disk drains when the network returns, and then accepts new operations`(_ megabytes: Int64)
        async throws
    {
        let faults = FaultPlan()
        let cache = try cache(faults)
        faults.limitRoom(to: megabytes << 20)
        let operation = operation()
        let count = try fill(cache, operation)
        #expect(count > 50)
        // No operation is acknowledged while the disk is full.
        for _ in 0..<3 { #expect(try fill(cache, operation, from: count) == count) }
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(received.numbers == Array(0..<count))
        cache.outbox.pause()
        #expect(try fill(cache, operation, from: count) > count + 50)
    }

    @Test(arguments: [false, true])
    func `a process that is restarted on a full disk drains too`(_ hasNoRoom: Bool) async throws {
        let faults = FaultPlan()
        var cache = try cache(faults)
        faults.limitRoom(to: 12 << 20)
        let operation = operation(batch: 10)
        let count = try fill(cache, operation)
        let room = faults.room
        cache.close()
        let next = FaultPlan()
        // Not even for the index of a log.
        next.limitRoom(to: hasNoRoom ? 0 : room)
        cache = try self.cache(next)
        cache.outbox.register(operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(received.numbers == Array(0..<count))
    }

    @Test func `cached content is evicted to store the server's answers`() async throws {
        let faults = FaultPlan()
        let cache = try cache(faults)
        // Files of their own, and rows.
        for index in 0..<40 {
            try await cache.update { update in
                update.put(Note(id: "old \(index)", text: String(repeating: "z", count: 100_000), revision: 1))
            }
        }
        faults.limitRoom(to: 8 << 20)
        let operation = operation(textBack: 70_000)
        let count = try fill(cache, operation)
        cache.outbox.resume()
        try await cache.outbox.drained()
        #expect(received.numbers == Array(0..<count))
        #expect(scene.events.withLock { $0 }.contains { if case .disk(.evicted) = $0 { true } else { false } })
    }

    @Test func `without a reserve the disk can be filled completely`() throws {
        let faults = FaultPlan()
        let cache = try cache(faults, reserve: 0)
        faults.limitRoom(to: 8 << 20)
        #expect(try fill(cache, operation()) > 300)
    }

    @Test func `cached values do not use the reserve for sending`() async throws {
        let faults = FaultPlan()
        let cache = try cache(faults)
        faults.limitRoom(to: 8 << 20)
        let operation = operation()
        _ = try fill(cache, operation)
        let full = await #expect(throws: LarderError.self) {
            for index in 0..<2_000 {
                try await cache.update {
                    $0.put(Note(id: "\(index)", text: String(repeating: "z", count: 10_000), revision: 1))
                }
            }
        }
        #expect((full?.cause as? DiskError)?.code == .full)
        cache.outbox.resume()
        try await cache.outbox.drained()
    }
}

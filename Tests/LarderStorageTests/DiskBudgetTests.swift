import FileFaults
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderStorage

@Suite("Disk store: budget and age", .oneMinute)
struct DiskBudgetTests {
    private let fixture = DiskFixture()

    private func payload(_ byte: UInt8, _ count: Int = 1_000) -> [UInt8] { [UInt8](repeating: byte, count: count) }

    @Test func `the budget holds after every write`() throws {
        let store = try fixture.store { $0.bytesMaximum = 20_000 }
        var generator = SeededGenerator(seed: 7)
        for index in 0..<150 {
            let count = generator.uniform(in: 1..<6_000)
            try store.put(fixture.entity("\(index)", payload(UInt8(index), count)))
            #expect(try store.statistics().bytes <= 20_000)
        }
        #expect(fixture.events.evicted > 100)
        #expect(try store.entity(fixture.key("149")) != nil)
        try store.removeAllItems()
        #expect(try store.statistics().bytes == 0)
    }

    @Test func `the least recently read item is evicted, and reading writes nothing for a while`() throws {
        let store = try fixture.store { $0.bytesMaximum = 6_000 }
        for id in ["1", "2", "3", "4"] { try store.put(fixture.entity(id, payload(1))) }
        fixture.clock.advance(by: .seconds(700))
        let before = try store.rowChanges()
        for _ in 0..<10 { #expect(try store.entity(fixture.key("1")) != nil) }
        #expect(try store.rowChanges() == before)
        #expect(try store.maintain())
        #expect(try store.rowChanges() == before + 1)
        fixture.clock.advance(by: .seconds(700))
        for id in ["5", "6", "7"] { try store.put(fixture.entity(id, payload(1))) }
        #expect(try store.entity(fixture.key("1")) != nil)
        #expect(try store.entity(fixture.key("2")) == nil)
    }

    @Test func `what has changed since a time is found, and what was evicted is said to be lost`() throws {
        let store = try fixture.store { $0.bytesMaximum = 6_000 }
        func put(_ id: String, _ changed: Int64) throws {
            var entity = fixture.entity(id, payload(1))
            entity.changed = Stamp(rawValue: changed)
            try store.put(entity)
        }
        func changes(since stamp: Int64, except answered: Int64 = 0) throws -> DiskStore.Changes {
            try store.read { transaction throws in
                try transaction.changes(
                    ofType: fixture.key("1").type,
                    since: Stamp(rawValue: stamp),
                    except: Stamp(rawValue: answered)
                )
            }
        }
        for number in 1...4 { try put("\(number)", Int64(number) * 10) }
        #expect(try changes(since: 15).ids == ["2", "3", "4"] && !changes(since: 0).areLost)
        #expect(try changes(since: 15, except: 30).ids == ["2", "4"])
        fixture.clock.advance(by: .seconds(700))
        for number in 5...8 { try put("\(number)", 5) }
        // The first ones were evicted.
        #expect(try store.entity(fixture.key("2")) == nil)
        #expect(try changes(since: 15).areLost && changes(since: 19).areLost)
        #expect(try !changes(since: 40).areLost && !changes(since: 40).ids.contains("2"))
    }

    @Test func `an item beyond the budget is rejected, and extreme limits store nothing`() throws {
        let store = try fixture.store { $0.bytesMaximum = 1_000 }
        let error = try #require(throws: DiskError.self) { try store.put(fixture.entity("1", payload(1, 2_000))) }
        #expect(error.code == .tooLarge)
        let other = DiskFixture()
        let none = try other.store {
            $0.bytesMaximum = -5
            $0.accessGranularity = .seconds(-1)
            $0.staleRetention = .seconds(Int64.max)
            $0.busyTimeout = .seconds(-1)
        }
        #expect(throws: DiskError.self) { try none.put(fixture.record("1")) }
        #expect(try none.statistics().items == 0)
    }

    @Test func `outdated items are removed in bounded steps, and stale ones stay`() throws {
        let store = try fixture.store { $0.staleRetention = .seconds(3_600) }
        try store.write { transaction throws in
            for index in 0..<200 { try transaction.put(fixture.record("\(index)", lifetime: .seconds(10))) }
            try transaction.put(fixture.record("later"))
            try transaction.put(fixture.entity("1"))
        }
        fixture.clock.advance(by: .seconds(3_620))
        var left = [try store.statistics().items]
        while try !store.maintain() { left.append(try store.statistics().items) }
        #expect(zip(left, left.dropFirst()).allSatisfy { $0 - $1 <= 64 } && left.count > 3, "\(left)")
        #expect(try store.statistics().items == 2)
        #expect(try store.record("later") != nil)
        #expect(try store.entity(fixture.key("1")) != nil)
        fixture.clock.advance(by: .seconds(3_600))
        while try !store.maintain() {}
        #expect(try store.entity(fixture.key("1")) == nil)
    }

    @Test func `free pages are returned in small steps during a read`() throws {
        let store = try fixture.store()
        try store.write { transaction throws in
            for index in 0..<300 { try transaction.put(fixture.record("\(index)", payload(1, 8_000))) }
            try transaction.put(fixture.entity("1"))
        }
        store.suspend()
        let large = fixture.directory.bytes("store.sqlite").count
        try store.write { transaction throws in
            for index in 0..<300 { try transaction.remove(.entity(EntityKey(type: "", id: "\(index)"))) }
        }
        try store.read { transaction throws in
            #expect(try transaction.entity(fixture.key("1")) != nil)
            var steps = 0
            while try !store.maintain() {
                steps += 1
                #expect(try transaction.entity(fixture.key("1")) != nil)
            }
            #expect(steps > 5)
        }
        store.suspend()
        #expect(fixture.directory.bytes("store.sqlite").count < large / 5)
    }

    @Test func `the budget shrinks before the disk is full, to a quarter at least`() throws {
        let free = Mutex<Int64?>(100_000)
        let store = try fixture.store {
            $0.bytesMaximum = 20_000
            $0.freeBytesMinimum = 50_000
            $0.freeBytes = { _ in free.withLock { $0 } }
        }
        for index in 0..<20 { try store.put(fixture.entity("\(index)", payload(1))) }
        let all = try store.statistics().bytes
        #expect(all > 15_000)
        _ = try store.emptyLog()
        free.withLock { $0 = 46_000 }
        try store.put(fixture.entity("20", payload(1)))
        #expect(try store.statistics().bytes <= all - 2_000 && fixture.events.evicted > 0)
        // What was evicted has not left the file yet, and is not evicted again.
        let evicted = fixture.events.evicted
        for _ in 0..<5 { try store.put(fixture.entity("20", payload(1))) }
        #expect(fixture.events.evicted == evicted)
        _ = try store.emptyLog()
        free.withLock { $0 = -100_000 }
        try store.put(fixture.entity("21", payload(1)))
        let least = try store.statistics().bytes
        #expect(least <= 5_000 && least > 3_000, "\(least)")
        #expect(try store.entity(fixture.key("21")) != nil)
        free.withLock { $0 = nil }
        for index in 30..<50 { try store.put(fixture.entity("\(index)", payload(1))) }
        #expect(try store.statistics().bytes > 15_000)
    }

    @Test func `what is evicted for the outbox is reported while no store is locked`()
        throws
    {
        let faults = FaultPlan()
        let opened = Mutex<[DiskStore]>([])
        let wereFree = Mutex<[Bool]>([])
        let store = try fixture.store {
            $0.faults = faults
            $0.onEvent = { event in
                guard case .evicted = event else { return }
                let areFree = opened.withLock { $0 }.allSatisfy { $0.writer.withLockIfAvailable { _ in true } ?? false }
                wereFree.withLock { $0.append(areFree) }
            }
        }
        let outbox = try store.outboxStore()
        opened.withLock { $0 = [store, outbox] }
        for index in 0..<40 { try store.put(fixture.entity("\(index)", payload(1, 100_000))) }
        faults.limitRoom(to: 0)
        #expect(try outbox.makeRoom())
        #expect(wereFree.withLock { $0 } == [true])
    }
}

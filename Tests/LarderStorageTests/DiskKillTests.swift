import Foundation
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderStorage

/// Random work is killed at each of its steps in turn.
@Suite("Disk store: killed at every step", .oneMinute)
struct DiskKillTests {
    /// The expected content.
    private struct Model: Equatable {
        var entities: [String: DiskEntity] = [:]
        var records: [String: DiskRecord] = [:]
        var lists: [String: DiskQuery] = [:]
        var token: String?
        var metadata: [UInt8]?
        var outbox: [[UInt8]] = []
    }

    /// A change that is made in one transaction.
    private enum Change {
        case put(DiskEntity)
        case page(DiskQuery, [DiskEntity], token: String)
        case record(DiskRecord)
        case touch(String, WallTime)
        case remove(String)
        case enqueue([UInt8], DiskEntity)
        case dequeue
        case metadata([UInt8])
        case clear
        case maintain
        /// The last connection is closed, and the log copied into the file.
        case suspend
    }

    private static let ids = ["a", "b", "c", "d"]

    private func changes(_ seed: UInt64, _ count: Int, _ fixture: DiskFixture) -> [Change] {
        var generator = SeededGenerator(seed: seed)
        var version: Int64 = 0
        func entity() -> DiskEntity {
            version += 1
            let size = [3, 40, 300, 3_000][generator.uniform(in: 0..<4)]
            let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ Int(version)) }
            return fixture.entity(Self.ids[generator.uniform(in: 0..<4)], payload, version: version)
        }
        return (0..<count).map { index in
            switch generator.uniform(in: 0..<13) {
            case 0...2: return .put(entity())
            case 3...4:
                let entities = (0..<2).map { _ in entity() }
                let query = DiskQuery(
                    QueryKey("feed", ["page": "\(generator.uniform(in: 0..<2))"]),
                    ids: entities.map(\.key),
                    isComplete: false,
                    fetchedAt: fixture.clock.now,
                    expiresAt: fixture.clock.now + .seconds(60)
                )
                return .page(query, entities, token: "t\(index)")
            case 5: return .record(fixture.record("r\(generator.uniform(in: 0..<2))", [UInt8(index)]))
            case 6: return .touch(Self.ids[generator.uniform(in: 0..<4)], fixture.clock.now + .seconds(Int64(index)))
            case 7: return .remove(Self.ids[generator.uniform(in: 0..<4)])
            case 8: return .enqueue([UInt8(index)], entity())
            case 9: return .dequeue
            case 10: return generator.uniform(in: 0..<4) == 0 ? .clear : .metadata([UInt8(index)])
            case 11: return .suspend
            default: return .maintain
            }
        }
    }

    private func apply(_ change: Change, to model: inout Model) {
        switch change {
        case .put(let entity): model.entities[entity.key.id] = entity
        case .page(let query, let entities, let token):
            for entity in entities { model.entities[entity.key.id] = entity }
            model.lists[query.key.description] = query
            model.token = token
        case .record(let record): model.records[record.key] = record
        case .touch(let id, let time):
            model.entities[id]?.validatedAt = time
            model.entities[id]?.expiresAt = time + .seconds(60)
        case .remove(let id): model.entities[id] = nil
        case .enqueue(let payload, let entity):
            model.outbox.append(payload)
            model.entities[entity.key.id] = entity
        case .dequeue: if !model.outbox.isEmpty { model.outbox.removeFirst() }
        case .metadata(let value): model.metadata = value
        case .clear:
            model.entities = [:]
            model.records = [:]
            model.lists = [:]
        case .maintain, .suspend: break
        }
    }

    private func apply(_ change: Change, to store: DiskStore, _ fixture: DiskFixture) throws {
        if case .maintain = change {
            _ = try store.maintain()
            return
        }
        if case .suspend = change { return store.suspend() }
        try store.write { transaction throws in
            switch change {
            case .put(let entity): try transaction.put(entity)
            case .page(let query, let entities, let token):
                for entity in entities { try transaction.put(entity) }
                try transaction.put(query)
                try transaction.setToken(token, for: "changes")
            case .record(let record): try transaction.put(record)
            case .touch(let id, let time):
                try transaction.touch(
                    .entity(fixture.key(id)),
                    RowTimes(fetchedAt: time, expiresAt: time + .seconds(60))
                )
            case .remove(let id): try transaction.remove(.entity(fixture.key(id)))
            case .enqueue(let payload, let entity):
                try transaction.append(
                    DiskOutboxRow(operation: "o", idempotencyKey: "\(payload)", payload: payload)
                )
                try transaction.put(entity)
            case .dequeue:
                if let first = try transaction.outbox(limit: 1).first {
                    try transaction.removeOperation(first.sequence)
                }
            case .metadata(let value): try transaction.setMetadata(value, for: "m")
            case .clear: try transaction.removeAllItems()
            case .maintain, .suspend: break
            }
        }
    }

    private func contents(_ store: DiskStore, _ fixture: DiskFixture) throws -> Model {
        try store.read { transaction throws in
            var model = Model()
            for id in Self.ids { model.entities[id] = try transaction.entity(fixture.key(id)) }
            for key in ["r0", "r1"] { model.records[key] = try transaction.record(key) }
            for page in ["0", "1"] {
                let key = QueryKey("feed", ["page": page])
                model.lists[key.description] = try transaction.query(key)
            }
            model.token = try transaction.token("changes")
            model.metadata = try transaction.metadata("m")
            model.outbox = try transaction.outbox().map(\.payload)
            return model
        }
    }

    private func killable(_ fixture: DiskFixture) -> KillableStore {
        KillableStore(fixture.configuration())
    }

    /// Runs the changes until the process dies. Returns the states of which one must be stored.
    private func run(_ changes: [Change], _ killable: KillableStore, _ fixture: DiskFixture) throws -> [Model] {
        var model = Model()
        do {
            _ = try killable.store()
        } catch {
            guard killable.isDead else { throw error }
            return [model]
        }
        for change in changes {
            var next = model
            apply(change, to: &next)
            do {
                try apply(change, to: killable.store(), fixture)
            } catch {
                guard killable.isDead else { throw error }
                return [model, next]
            }
            model = next
            // It died in the work after a commit.
            if killable.isDead { return [model] }
        }
        return [model]
    }

    @Test(arguments: [(1, false), (2, false), (3, true)] as [(UInt64, Bool)])
    func `after each possible death committed data is there, and nothing else`(_ seed: UInt64, _ isHalfWay: Bool) throws
    {
        let whole = DiskFixture()
        let unharmed = killable(whole)
        let states = try run(changes(seed, 12, whole), unharmed, whole)
        let steps = unharmed.stepCount
        #expect(try contents(unharmed.store(), whole) == states[0], "seed \(seed)")
        #expect(steps > 150)
        for step in 1...steps {
            let fixture = DiskFixture()
            let killable = killable(fixture)
            killable.kill(atStep: step, halfWay: isHalfWay)
            let allowed = try run(changes(seed, 12, fixture), killable, fixture)
            #expect(killable.isDead, "seed \(seed), step \(step)")
            let store = try killable.reopen()
            let found = try contents(store, fixture)
            #expect(allowed.contains(found), "seed \(seed), killed at step \(step) of \(steps)")
            #expect(fixture.events.recoveries.isEmpty && fixture.events.discarded.isEmpty, "seed \(seed), step \(step)")
            // The store can be used again.
            while try !store.maintain() {}
            try store.put(fixture.entity("z", version: 1))
            if allowed.contains(found) == false { break }
        }
    }

    @Test(arguments: [KillableStore.Failure.full, .inputOutput])
    func `any failing step loses at most its own change`(_ failure: KillableStore.Failure) throws {
        let whole = DiskFixture()
        let unharmed = killable(whole)
        _ = try unharmed.store()
        let first = unharmed.stepCount
        let all = changes(4, 12, whole)
        for change in all { try apply(change, to: unharmed.store(), whole) }
        for step in 1...(unharmed.stepCount - first) {
            let fixture = DiskFixture()
            let killable = killable(fixture)
            let store = try killable.store()
            killable.fail(failure, atStep: step)
            var model = Model()
            var failures = 0
            for change in changes(4, 12, fixture) {
                var next = model
                apply(change, to: &next)
                do {
                    try apply(change, to: store, fixture)
                    model = next
                } catch let error as DiskError {
                    #expect(error.code == (failure == .full ? .full : .inputOutput), "step \(step)")
                    failures += 1
                }
            }
            #expect(failures <= 1)
            #expect(try contents(store, fixture) == model, "step \(step)")
            #expect(fixture.events.recoveries.isEmpty, "step \(step)")
        }
    }

    @Test func `an interrupted erase leaves no readable data, and a second erase completes it`() throws {
        var step = 0
        var isDone = false
        while !isDone {
            step += 1
            let fixture = DiskFixture()
            let killable = killable(fixture)
            let store = try killable.store()
            try store.put(fixture.entity("1", [UInt8](repeating: 1, count: 3_000)))
            try store.put(fixture.record("r"))
            killable.kill(atStep: step)
            do {
                try store.erase()
                isDone = true
            } catch {
                #expect(killable.isDead)
            }
            killable.abandon()
            #expect(isDone == !FileManager.default.fileExists(atPath: fixture.directory.path))
            if !isDone {
                try killable.store().erase()
                #expect(!FileManager.default.fileExists(atPath: fixture.directory.path), "step \(step)")
            }
        }
        #expect(step > 5)
    }

    @Test func `a process that dies while a damaged database is replaced loses no operation of the outbox`() throws {
        var step = 0
        var isDone = false
        while !isDone {
            step += 1
            let fixture = DiskFixture()
            do {
                let store = try fixture.store()
                try store.write { transaction throws in
                    for index in 0..<5 {
                        try transaction.append(
                            DiskOutboxRow(operation: "o", idempotencyKey: "\(index)", payload: [UInt8(index)])
                        )
                        try transaction.put(fixture.entity("\(index)"))
                    }
                }
            }
            try fixture.directory.overwrite("store.sqlite", at: 0, with: [UInt8](repeating: 0xEE, count: 512))
            let killable = killable(fixture)
            killable.kill(atStep: step)
            do {
                _ = try killable.store()
                isDone = !killable.isDead
            } catch {
                #expect(killable.isDead, "step \(step)")
            }
            let store = try killable.reopen()
            let outbox = try store.read { transaction throws in try transaction.outbox() }
            #expect(outbox.map(\.payload) == (0..<5).map { [UInt8($0)] }, "step \(step)")
            #expect(!fixture.events.recoveries.isEmpty)
        }
        #expect(step > 30)
    }
}

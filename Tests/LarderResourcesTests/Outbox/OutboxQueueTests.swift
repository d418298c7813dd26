import LarderEvents
import LarderStorage
import LarderTime
import TestSupport
import Testing

@testable import LarderResources

@Suite("Outbox: queue", .oneMinute)
struct OutboxQueueTests {
    private static let atOnce = MonotonicTime(nanoseconds: .min)

    private func entry(_ id: Int64, _ name: String, _ scope: String, _ payload: Int, key: String? = nil) -> Outbox.Entry
    {
        var row = DiskOutboxRow(
            operation: name,
            scope: scope,
            coalescingKey: key,
            idempotencyKey: "k\(id)",
            payload: [UInt8](repeating: 1, count: payload)
        )
        row.sequence = id
        row.enqueued = id
        return Outbox.Entry(row)
    }

    private func operation(_ name: String, _ rejectionBlocksScope: Bool, batch: Int) -> OutboxOperation {
        var operation = WriteBehind<String, Int>(name, scope: { $0 }, changes: { _, _ in }, send: { _ in [] })
        operation.rejectionBlocksScope = rejectionBlocksScope
        operation.batchMaximum = batch
        return OutboxOperation(operation)
    }

    /// The operations that block or can be sent, found by looking at all of them.
    private func lanes(_ entries: [Outbox.Entry], _ registered: Set<String>) -> [String: [Outbox.Entry]] {
        var lanes: [String: [Outbox.Entry]] = [:]
        for entry in entries.sorted(by: { $0.id < $1.id }) {
            let blocks = entry.operation == "block" && registered.contains("block")
            if entry.state != .rejected || blocks { lanes[entry.scope, default: []].append(entry) }
        }
        return lanes
    }

    @Test(arguments: seeds(4))
    func `counts, lanes and ready operations are those of a search through all operations`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var queue = OutboxQueue()
        var model: [Int64: Outbox.Entry] = [:]
        var registered: Set<String> = []
        var now = MonotonicTime(nanoseconds: 1_000)
        var last: Int64 = 0
        for step in 0..<400 {
            let known = model.keys.sorted()
            let chosen = known.isEmpty ? nil : known[generator.uniform(in: 0..<known.count)]
            switch generator.uniform(in: 0..<14) {
            case 0..<5:
                last += 1
                let name = ["block", "go", "later"][generator.uniform(in: 0..<3)]
                let new = entry(
                    last,
                    name,
                    "s\(generator.uniform(in: 0..<6))",
                    generator.uniform(in: 0..<9),
                    key: generator.uniform(in: 0..<2) == 0 ? "c\(generator.uniform(in: 0..<2))" : nil
                )
                model[last] = new
                queue.put(new)
            case 5:
                if let chosen {
                    model[chosen] = nil
                    queue.remove(chosen)
                }
            case 6..<10:
                guard let chosen else { continue }
                let due = now + .nanoseconds(generator.uniform(in: 0..<50))
                let kind = generator.uniform(in: 0..<5)
                let change = { (entry: inout Outbox.Entry) in
                    switch kind {
                    case 0: entry.state = .rejected
                    case 1: entry.state = .pending
                    case 2:
                        entry.state = .inDoubt
                        entry.due = due
                    case 3: entry.payload.append(2)
                    default: entry.failureCount += 1
                    }
                }
                if var entry = model[chosen] {
                    change(&entry)
                    model[chosen] = entry
                }
                queue.update(chosen, change)
            case 10:
                let name = ["block", "go", "later"][generator.uniform(in: 0..<3)]
                registered.insert(name)
                queue.register(operation(name, name == "block", batch: 3))
            case 11:
                now = now + .nanoseconds(20)
                queue.clearDelays()
                for id in model.keys { model[id]?.due = Self.atOnce }
            default:
                now = now + .nanoseconds(generator.uniform(in: 0..<40))
                let next = queue.nextDue(after: now)
                // An older operation may have been rejected, and returned while a later one of its lane is in flight.
                let idle = lanes(Array(model.values), registered).values.filter {
                    $0.allSatisfy { $0.state != .sending }
                }
                var heads = idle.compactMap(\.first).filter {
                    ($0.state == .pending || $0.state == .inDoubt) && registered.contains($0.operation)
                }
                let future = heads.filter { $0.due > now }
                heads.removeAll { $0.due > now }
                #expect(next == future.map(\.due).min(), "seed \(seed), step \(step)")
                let batch = queue.takeBatch(of: [.usual], at: now, .unrestricted)?.entries ?? []
                let possible = Set(heads.map(\.id))
                #expect(batch.allSatisfy { possible.contains($0.id) }, "seed \(seed), step \(step)")
                #expect(batch.isEmpty == possible.isEmpty, "seed \(seed), step \(step)")
                #expect(Set(batch.map(\.operation)).count <= 1 && batch.count <= 3)
                for entry in batch { model[entry.id.rawValue] = entry }
            }
            let all = Array(model.values)
            let expected = lanes(all, registered)
            let status = queue.status
            #expect(queue.sorted.map(\.id) == model.keys.sorted().map { OperationID($0) })
            #expect(status.pending == all.count { $0.state == .pending || $0.state == .inDoubt })
            #expect(status.inFlight == all.count { $0.state == .sending })
            #expect(status.inDoubt == all.count { $0.state == .inDoubt })
            #expect(status.rejected == all.count { $0.state == .rejected })
            #expect(
                status.blockedScopes == expected.values.count { $0.first?.state == .rejected },
                "seed \(seed), step \(step)"
            )
            #expect(status.oldest == all.filter { $0.state != .rejected }.map(\.enqueuedAt).min())
            #expect(queue.rejected.map(\.id) == all.filter { $0.state == .rejected }.map(\.id).sorted())
            #expect(queue.bytes == all.reduce(0) { $0 + $1.bytes })
            for scope in 0..<6 {
                #expect(Array(queue.lane("s\(scope)")) == (expected["s\(scope)"] ?? []).map(\.id.rawValue))
                for key in ["c0", "c1"] {
                    let newest = expected["s\(scope)"]?.last { $0.coalescingKey == key || $0.coalescingKey == nil }
                    let known = newest?.coalescingKey == nil ? nil : newest?.id
                    #expect(queue.newest(in: "s\(scope)", key: key)?.id == known, "seed \(seed), step \(step)")
                }
            }
            for name in ["block", "go", "later"] where !registered.contains(name) {
                #expect((queue.unregistered[name] ?? 0) == all.count { $0.operation == name && $0.state != .rejected })
            }
        }
    }
}

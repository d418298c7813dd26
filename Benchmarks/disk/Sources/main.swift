import Foundation
import Larder

/// Prints the time of a piece of work, and returns it in nanoseconds per operation.
func measure(_ name: String, runs: Int = 15, operations: Int, _ body: () throws -> Void) rethrows -> Double {
    var times: [Double] = []
    let clock = ContinuousClock()
    try body()
    for _ in 0..<runs {
        let time = try clock.measure { try body() }
        times.append(Double(time.components.seconds) * 1e9 + Double(time.components.attoseconds) / 1e9)
    }
    times.sort()
    let (median, best, worst) = (times[runs / 2], times[0], times[runs - 1])
    let each = Double(operations)
    print(
        "\(name.padding(toLength: 58, withPad: " ", startingAt: 0))",
        String(format: "%11.2f µs  (%.2f to %.2f)", median / each / 1e3, best / each / 1e3, worst / each / 1e3)
    )
    return median / each
}

if CommandLine.arguments.count == 3, CommandLine.arguments[1] == "compression" {
    try measureCompression(CommandLine.arguments[2])
    exit(0)
}

let count = 100_000
let directory = NSTemporaryDirectory() + "larder-disk-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
defer { try? FileManager.default.removeItem(atPath: directory) }
var configuration = DiskStore.Configuration(directory: directory)
configuration.bytesMaximum = 1 << 40
let now = SystemWallClock().now

func entity(_ index: Int, version: Int64 = 1) -> DiskEntity {
    DiskEntity(
        EntityKey(type: "post", id: "post_\(index)"),
        payload: (0..<1_000).map { UInt8(truncatingIfNeeded: $0 &* index) },
        version: version,
        entityTag: "\"0123456789abcdef\"",
        RowTimes(fetchedAt: now, expiresAt: now + .seconds(3_600))
    )
}

let feed = DiskQuery(
    QueryKey("feed", ["limit": "50"]),
    ListMembers((0..<50).map { EntityKey(type: "post", id: "post_\($0 * 1_999)") }),
    times: RowTimes(fetchedAt: now, expiresAt: now)
)

do {
    let store = try DiskStore(configuration)
    for start in stride(from: 0, to: count, by: 1_000) {
        try store.write { transaction in
            for index in start..<(start + 1_000) { try transaction.put(entity(index)) }
        }
    }
    _ = try store.write { transaction in try transaction.put(feed) }
    store.suspend()
}
print("\(count) entities of 1,000 bytes; median of 15 runs (best to worst)")

_ = try measure("open a store", operations: 1) { _ = try DiskStore(configuration) }
_ = try measure("open a store and read a list of 50 entities", operations: 1) {
    let found = try DiskStore(configuration).list(feed.key)?.entities.count
    precondition(found == 50, "the stored list is missing")
}

let store = try DiskStore(configuration)
var generator = SeededGenerator(seed: 1)
for (name, range) in [("in SQLite's cache", 0..<500), ("in the system's cache", 0..<count)] {
    let ids = (0..<5_000).map { _ in "post_\(generator.uniform(in: range))" }
    let plain = try PlainSQLite(directory + "/store.sqlite")
    var total = 0
    var (bare, decoded, ours): ([Double], [Double], [Double]) = ([], [], [])
    let clock = ContinuousClock()
    // Interleaved, so that other load affects all three.
    for _ in 0..<31 {
        bare.append(
            clock.measure { for id in ids { total += plain.payload("post", id)?.count ?? 0 } }
                / .microseconds(ids.count)
        )
        decoded.append(
            clock.measure { for id in ids { total += plain.entity("post", id)?.payload.count ?? 0 } }
                / .microseconds(ids.count)
        )
        ours.append(
            try clock.measure {
                for id in ids { total += try store.entity(EntityKey(type: "post", id: id))?.payload.count ?? 0 }
            } / .microseconds(ids.count)
        )
    }
    precondition(total == 3 * 31 * ids.count * 1_000, "a payload is missing")
    let medians = [bare, decoded, ours].map { $0.sorted()[15] }
    print("hit \(name):")
    print(String(format: "    C interface, payload alone  %.2f µs", medians[0]))
    print(String(format: "    C interface and decoding    %.2f µs", medians[1]))
    print(String(format: "    the store                   %.2f µs", medians[2]))
    // The goal: 1.2 times the C interface, plus decoding.
    let goal = 1.2 * medians[0] + medians[1] - medians[0]
    print(String(format: "    goal %.2f µs; ratio %.2f with decoding on both sides", goal, medians[2] / medians[1]))
}
_ = try measure("a list of 50 entities", operations: 200) {
    for _ in 0..<200 { _ = try store.list(feed.key) }
}

var version: Int64 = 1
_ = try measure("store an entity, a transaction each", operations: 200) {
    version += 1
    for index in 0..<200 { try store.write { _ = try $0.put(entity(index, version: version)) } }
}
_ = try measure("store an entity, 1,000 in a transaction", operations: 1_000) {
    version += 1
    try store.write { transaction in
        for index in 0..<1_000 { try transaction.put(entity(index, version: version)) }
    }
}
_ = try measure("renew the times of an entity (304), a transaction each", operations: 200) {
    for index in 0..<200 {
        let key = StoredKey.entity(EntityKey(type: "post", id: "post_\(index)"))
        _ = try store.write { try $0.touch(key, RowTimes(fetchedAt: now, expiresAt: now)) }
    }
}
_ = try measure("a step of maintenance with nothing to do", operations: 20) {
    for _ in 0..<20 { _ = try store.maintain() }
}

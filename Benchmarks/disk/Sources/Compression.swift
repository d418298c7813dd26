import Foundation
import Larder

/// What the compressing transform saves on the demo's data, and what it costs.
///
/// Items of the fixtures are compact JSON, one payload each, as the server sends them; lists are pages of 50 items, as the HTTP cache
/// stores them.
func measureCompression(_ fixtures: String) throws {
    var kinds: [(name: String, payloads: [[UInt8]])] = []
    for name in ["people", "posts", "messages", "tasks", "accounts", "transfers", "images"] {
        let data = try Data(contentsOf: URL(fileURLWithPath: "\(fixtures)/\(name).json"))
        let whole = try JSONSerialization.jsonObject(with: data)
        let items = (whole as? [Any]) ?? (whole as? [String: Any])?.values.compactMap { $0 as? [Any] }.first ?? []
        func compact(_ value: Any) throws -> [UInt8] {
            Array(try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes]))
        }
        kinds.append((name, try items.map(compact)))
        let pages = stride(from: 0, to: items.count, by: 50).map { Array(items[$0..<min($0 + 50, items.count)]) }
        kinds.append(("\(name), pages of 50", try pages.map(compact)))
    }
    for ending in ["png", "jpg"] {
        let names = try FileManager.default.contentsOfDirectory(atPath: "\(fixtures)/images").sorted()
        let files = try names.filter { $0.hasSuffix(ending) }
            .map { Array(try Data(contentsOf: URL(fileURLWithPath: "\(fixtures)/images/\($0)"))) }
        kinds.append(("pictures, \(ending)", files))
    }
    let transform = DiskStore.CompressingTransform()
    print("payloads            count   bytes each   stored    encode    decode, µs each (medians of 15)")
    for (name, payloads) in kinds where !payloads.isEmpty {
        let stored = try payloads.map(transform.encode)
        var count = 0
        let encode = try median { for payload in payloads { count += try transform.encode(payload).count } }
        let decode = try median { for payload in stored { count += try transform.decode(payload).count } }
        precondition(count > 0, "something was encoded")
        let (before, after) = (payloads.reduce(0) { $0 + $1.count }, stored.reduce(0) { $0 + $1.count })
        print(
            name.padding(toLength: 22, withPad: " ", startingAt: 0),
            String(
                format: "%4d %10d %9.1f %% %9.1f %9.1f",
                payloads.count,
                before / payloads.count,
                100 * Double(after) / Double(before),
                encode / Double(payloads.count),
                decode / Double(payloads.count)
            )
        )
    }
    let entities = kinds.filter { !$0.name.contains(",") }.flatMap(\.payloads)
    for isCompressed in [false, true, false, true] { try measureStore(entities, isCompressed: isCompressed) }
}

/// The median of 15 runs, in microseconds.
private func median(_ body: () throws -> Void) rethrows -> Double {
    let clock = ContinuousClock()
    try body()
    let times = try (0..<15).map { _ in try clock.measure(body) / .microseconds(1) }
    return times.sorted()[7]
}

/// Stores and reads all entities five times under different names.
private func measureStore(_ payloads: [[UInt8]], isCompressed: Bool) throws {
    let directory = NSTemporaryDirectory() + "larder-compression-\(ProcessInfo.processInfo.processIdentifier)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var configuration = DiskStore.Configuration(directory: directory)
    configuration.bytesMaximum = 1 << 40
    if isCompressed { configuration.transform = DiskStore.CompressingTransform() }
    let store = try DiskStore(configuration)
    let now = SystemWallClock().now
    let clock = ContinuousClock()
    var (writes, reads): ([Double], [Double]) = ([], [])
    for round in 0..<5 {
        let written = try clock.measure {
            try store.write { transaction in
                for (index, payload) in payloads.enumerated() {
                    let key = EntityKey(type: "item", id: "\(round)_\(index)")
                    try transaction.put(
                        DiskEntity(
                            key,
                            payload: payload,
                            version: 1,
                            RowTimes(fetchedAt: now, expiresAt: now + .seconds(3_600))
                        )
                    )
                }
            }
        }
        writes.append(written / .microseconds(payloads.count))
        var found = 0
        let read = try clock.measure {
            for index in payloads.indices {
                found += try store.entity(EntityKey(type: "item", id: "\(round)_\(index)"))?.payload.count ?? 0
            }
        }
        precondition(found == payloads.reduce(0) { $0 + $1.count }, "everything was read")
        reads.append(read / .microseconds(payloads.count))
    }
    store.suspend()
    let size = (try FileManager.default.attributesOfItem(atPath: directory + "/store.sqlite")[.size] as? Int) ?? 0
    print(
        isCompressed ? "store, compressed:" : "store, plain:",
        String(
            format: "%d items, %d KiB on disk, write %.1f µs, read %.1f µs each (medians of 5)",
            5 * payloads.count,
            size >> 10,
            writes.sorted()[2],
            reads.sorted()[2]
        )
    )
}

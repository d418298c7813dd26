import Foundation
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// Entries that leave memory for the disk, and come back.
@Suite("Spilling to disk", .oneMinute)
struct DiskSpillTests {
    private typealias Spill = DiskSpill<String, String>

    private final class Place {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "larder-spill-\(UUID().uuidString)"
        )
        .path
        let clock = ManualClock()
        let failures = Mutex(0)
        let disk: DiskStore

        init() throws {
            disk = try DiskStore(DiskStore.Configuration(directory: directory, clock: clock))
        }

        deinit { try? FileManager.default.removeItem(atPath: directory) }

        func records() throws -> [String] {
            try disk.read { transaction in try transaction.recordKeys(startingWith: "spill/") }
        }
    }

    private struct Unreadable: Error {}

    private static let coding = Spill.Coding(
        encode: { Array($0.utf8) },
        decode: { String(decoding: $0, as: UTF8.self) }
    )

    private func tier(
        _ place: Place,
        count: Int = 4,
        _ coding: Spill.Coding = Self.coding,
        limits: Spill.Limits = Spill.Limits(),
        onFailure: @escaping @Sendable (any Error) -> Void = { _ in }
    ) -> SpillingMemoryTier<String, String> {
        SpillingMemoryTier(
            limits: .init(count: count),
            policy: .lru,
            clock: place.clock,
            spill: Spill(
                place.disk,
                name: "test",
                coding,
                limits: limits,
                clock: place.clock,
                wall: place.clock,
                onFailure: onFailure
            )
        )
    }

    @Test func `what leaves for want of room goes to the disk and comes back when it is read`() async throws {
        let place = try Place()
        let tier = tier(place)
        for number in 0..<10 { tier.store("value \(number)", for: "\(number)", cost: 7) }
        await tier.spill.flush()
        #expect(tier.memory.count == 4)
        #expect(try place.records().count == 6)
        #expect(tier["0"] == "value 0" && tier.memory.peek("0") == "value 0")
        await tier.spill.flush()
        // One came back and another one left for it.
        #expect(try place.records().count == 6)
        #expect((0..<10).allSatisfy { tier["\($0)"] == "value \($0)" })
        #expect(tier["10"] == nil)
        #expect(tier.spill.statistics.promoted >= 6)
    }

    @Test func `a read gives what was stored last or nothing, whatever moves to and fro`() async throws {
        for seed in UInt64(1)...4 {
            let place = try Place()
            var generator = SeededGenerator(seed: seed)
            let tier = tier(place, count: 5)
            var known: [String: (value: String, expires: MonotonicTime?)] = [:]
            for step in 0..<800 {
                let key = "\(generator.uniform(in: 0..<20))"
                switch generator.uniform(in: 0..<20) {
                case 0..<8:
                    let seconds = generator.uniform(in: 0..<3) == 0 ? generator.uniform(in: 1..<20) : nil
                    let cost = generator.uniform(in: 0..<30)
                    tier.store("\(step)", for: key, cost: cost, lifetime: seconds.map { .seconds($0) })
                    known[key] = ("\(step)", seconds.map { place.clock.uptime + .seconds($0) })
                case 8..<16:
                    let value = tier[key]
                    let now = place.clock.uptime
                    let wanted = known[key].flatMap { $0.expires.map { $0 <= now } == true ? nil : $0.value }
                    if value != wanted { Issue.record("seed \(seed), step \(step): \(value ?? "-"), \(wanted ?? "-")") }
                case 16:
                    tier.remove(key)
                    known[key] = nil
                case 17: tier.trim(toCount: generator.uniform(in: 0..<5))
                case 18: place.clock.advance(by: .seconds(generator.uniform(in: 0..<4)))
                default:
                    if generator.uniform(in: 0..<8) == 0 {
                        tier.removeAll()
                        known = [:]
                    }
                    await tier.spill.flush()
                }
            }
            tier.removeAll()
            await tier.spill.flush()
            #expect(try place.records().isEmpty && tier.spill.statistics.bytes == 0)
        }
    }

    @Test func `threads that move entries to and fro never see an old one`() async throws {
        let place = try Place()
        let tier = tier(place, count: 3)
        await withTaskGroup(of: Void.self) { group in
            for owner in 0..<4 {
                group.addTask {
                    var generator = SeededGenerator(seed: UInt64(owner))
                    var known: [String: String] = [:]
                    for step in 0..<400 {
                        // Only this one writes these; the others push them out.
                        let key = "\(owner) \(generator.uniform(in: 0..<4))"
                        switch generator.uniform(in: 0..<5) {
                        case 0, 1:
                            tier.store("\(step)", for: key)
                            known[key] = "\(step)"
                        case 2:
                            tier.remove(key)
                            known[key] = nil
                        default:
                            _ = tier["\((owner + 1) % 4) \(generator.uniform(in: 0..<4))"]
                            let value = tier[key]
                            if value != nil, value != known[key] { Issue.record("\(key): \(value ?? "")") }
                        }
                    }
                }
            }
        }
    }

    @Test func `entries are compressed by the functions that are given, and what cannot be read is a miss`()
        async throws
    {
        let place = try Place()
        let failures = Mutex(0)
        let coding = Spill.Coding(
            encode: { Array($0.utf8) },
            decode: { bytes in
                if bytes.starts(with: Array("bad".utf8)) { throw Unreadable() }
                return String(decoding: bytes, as: UTF8.self)
            },
            compress: { bytes in [UInt8(bytes.count), bytes.first ?? 0] },
            decompress: { packed in [UInt8](repeating: packed[1], count: Int(packed[0])) }
        )
        let tier = tier(place, count: 1, coding, onFailure: { _ in failures.withLock { $0 += 1 } })
        tier.store(String(repeating: "x", count: 100), for: "a")
        tier.store("y", for: "b")
        await tier.spill.flush()
        let name = try #require(try place.records().first)
        let record = try #require(try place.disk.record(name))
        #expect(record.payload == [100, UInt8(ascii: "x")] && tier.spill.statistics.bytes == 2)
        #expect(tier["a"] == String(repeating: "x", count: 100))
        let plain = self.tier(place, count: 1, .init(encode: coding.encode, decode: coding.decode)) { _ in
            failures.withLock { $0 += 1 }
        }
        plain.store("bad", for: "c")
        plain.store("good", for: "d")
        await plain.spill.flush()
        #expect(plain["c"] == nil && failures.withLock { $0 } == 1)
        #expect(plain["d"] == "good")
    }

    @Test func `what is on disk is bounded, and the oldest leaves`() async throws {
        let place = try Place()
        var limits = Spill.Limits()
        limits.bytesMaximum = 50
        limits.entryBytesMaximum = 20
        let tier = tier(place, count: 1, limits: limits)
        for number in 0..<20 {
            tier.store(String(repeating: "x", count: 10), for: "\(number)")
            await tier.spill.flush()
        }
        tier.store(String(repeating: "x", count: 21), for: "large")
        tier.store("y", for: "last")
        await tier.spill.flush()
        #expect(tier.spill.statistics.bytes <= 50)
        #expect(try place.records().count == 5)
        #expect(tier["large"] == nil && tier["3"] == nil && tier["17"] != nil)
    }

    @Test func `what waits to be written is bounded too`() async throws {
        let place = try Place()
        var limits = Spill.Limits()
        limits.waitingCostMaximum = 10
        let tier = tier(place, count: 1, limits: limits)
        tier.store("huge", for: "a", cost: 11)
        tier.store("b", for: "b")
        await tier.spill.flush()
        #expect(tier["a"] == nil && tier.spill.statistics.dropped == 1)
    }

    @Test func `a lifetime ends on the disk as it would have in memory`() async throws {
        let place = try Place()
        let tier = tier(place, count: 1)
        tier.store("a", for: "a", lifetime: .seconds(10))
        tier.store("b", for: "b")
        await tier.spill.flush()
        place.clock.advance(by: .seconds(6))
        #expect(tier["a"] == "a")
        // Back in memory it has what was left of it.
        place.clock.advance(by: .seconds(4))
        #expect(tier["a"] == nil)
    }

    @Test func `what an earlier process has spilled is removed`() async throws {
        let place = try Place()
        let first = tier(place, count: 1)
        for key in ["a", "b", "c"] { first.store(key, for: key) }
        await first.spill.flush()
        #expect(try place.records().count == 2)
        let second = tier(place, count: 1)
        #expect(second["a"] == nil)
        second.store("d", for: "d")
        second.store("e", for: "e")
        await second.spill.flush()
        #expect(try place.records().count == 1)
    }
}

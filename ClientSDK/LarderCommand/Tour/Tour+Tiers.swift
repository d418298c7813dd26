import Foundation
import Larder
import LarderDemo
import LarderServer

extension TourScene {
    /// One value from memory, disk and network.
    func tiers() async throws -> TourChapter {
        var chapter = begin(
            .tiers,
            "One profile is read from memory, from disk and from the server. How long does each take, and what is left after the process "
                + "was killed?"
        )
        let world = try world()
        let client = try await client(world)
        defer { client.close() }
        let resource = client.profiles.resource("user_3")
        let first = try await cost(world) { try await client.cache.value(resource) }
        let size = try JSONEncoder().encode(first.value).count
        let memory = try await times(200, calls: 200) { _ = try await client.cache.value(resource) }
        var seen: Set<String> = []
        let disk = try await times(200) {
            client.cache.trimMemory(toBytes: 0)
            seen.insert(try await client.cache.snapshot(resource, .cacheOnly).source?.rawValue ?? "none")
        }
        guard seen == ["disk"] else { throw Failure("A read after a trim of memory came from \(seen.sorted()).") }
        let local = try await times(50) { _ = try await client.cache.snapshot(resource, .networkOnly) }
        try world.set(.threeG)
        let mobile = try await times(8) { _ = try await client.cache.snapshot(resource, .networkOnly) }
        let rows: [(String, TourTimes, String)] = [
            ("memory", memory, "no"), ("disk", disk, "yes"), ("server on this machine", local, "–"),
            ("server over 3g", mobile, "–"),
        ]
        chapter.exhibits = [
            .table(
                TourTable(
                    title: "One profile of \(size) bytes",
                    columns: ["from", "median", "10 %", "90 %", "survives a kill"],
                    rows: rows.map { name, times, survives in
                        [
                            .text(name), .duration(times.median), .duration(times.low), .duration(times.high),
                            .text(survives),
                        ]
                    }
                )
            ),
            .bars(
                TourBars(
                    title: "Median",
                    isLogarithmic: true,
                    bars: rows.map { ($0.0, .duration($0.1.median)) }
                )
            ),
        ]
        let factor = mobile.median / max(memory.median, .nanoseconds(1))
        let diskFactor = mobile.median / max(disk.median, .nanoseconds(1))
        chapter.answer =
            "A memory hit is \(Int(factor)) times as fast as the server over 3g, a disk hit \(Int(diskFactor)) times. Only the disk "
            + "survives the process."
        return chapter
    }
}

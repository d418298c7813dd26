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
        let left = try await cacheAfterKill("tiers")
        defer { left.close() }
        func survives(_ resource: Resource<String>) -> String { left.stored(resource) == nil ? "no" : "yes" }
        func limit(_ bytes: Int64?, _ order: String) -> String {
            bytes.map { "\(SizeText.text($0)), \(order)" } ?? "–"
        }
        let settings = client.cache.configuration
        let memoryLimit = limit(Int64(settings.memoryBytesMaximum), "read longest ago")
        let diskLimit = limit(client.cache.disk?.configuration.bytesMaximum, "read longest ago")
        let rows: [(String, TourTimes, String, String)] = [
            ("memory", memory, survives(TourDeath.code), memoryLimit),
            ("disk", disk, survives(TourDeath.article), diskLimit),
            ("server on this machine", local, "–", "–"), ("server over 3g", mobile, "–", "–"),
        ]
        chapter.exhibits = [
            .table(
                TourTable(
                    title: "One profile of \(size) bytes",
                    columns: ["from", "median", "10 %", "90 %", "survives a kill", "limit, and what leaves first"],
                    rows: rows.map { name, times, survives, limit in
                        [
                            .text(name), .duration(times.median), .duration(times.low), .duration(times.high),
                            .text(survives), .text(limit),
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
        /// With two figures: more are different at each run.
        func factor(_ times: TourTimes) -> String {
            let exact = mobile.median / max(times.median, .nanoseconds(1))
            let unit = pow(10, max(0, log10(max(1, exact)).rounded(.down) - 1))
            let factor = Int((exact / unit).rounded() * unit)
            return factor < 10_000 ? "\(factor)" : "\(factor / 1_000) thousand"
        }
        chapter.answer =
            "A memory hit is some \(factor(memory)) times as fast as the server over 3g, a disk hit \(factor(disk)) times. After SIGKILL of "
            + "another process, what it had in memory only was \(rows[0].2 == "yes" ? "left" : "gone"), and what it had on disk was "
            + "\(rows[1].2 == "yes" ? "left" : "gone")."
        return chapter
    }
}

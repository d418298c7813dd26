import Foundation
import SimulationRuntime

/// What some runs have found. Processes that share the runs hand it over as text.
struct Outcome {
    /// By the number of the plan.
    var hashes: [Int: String] = [:]
    var failed: [Int] = []
    var coverage = Coverage()

    init() {}

    /// - Returns: nil if the process that should have written the file has not.
    init?(contentsOf path: String) {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "\t").map(String.init)
            switch (parts.first, parts.count) {
            case ("hash", 3): if let number = Int(parts[1]) { hashes[number] = parts[2] }
            case ("failed", 2): if let number = Int(parts[1]) { failed.append(number) }
            case ("count", 3): coverage.count(parts[1], Int(parts[2]) ?? 0)
            default: break
            }
        }
    }

    func write(to path: String) throws {
        var lines = hashes.map { "hash\t\($0)\t\($1)" }
        lines += failed.map { "failed\t\($0)" }
        lines += coverage.counts.map { "count\t\($0)\t\($1)" }
        try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    }

    mutating func add(_ other: Outcome) {
        hashes.merge(other.hashes) { $1 }
        failed += other.failed
        coverage.add(other.coverage.counts)
    }

    /// Prints what the runs have met, and how often each oracle has judged.
    ///
    /// - Returns: whether nothing has failed and every oracle has judged often enough. Few runs do not tell that.
    func summarize(_ plans: [Plan], seconds: Double) -> Bool {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in plans.indices.flatMap({ Array((hashes[$0] ?? "").utf8) }) {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        print("hash of all runs: \(String(hash, radix: 16))")
        let rate = Double(plans.count) / max(seconds, 0.001)
        print("\(plans.count) runs in \(tenths(seconds)) s, \(tenths(rate)) runs/s, \(failed.count) failed")
        if plans.count == 1 { return failed.isEmpty }
        let counts = coverage.counts.filter { !$0.key.hasPrefix("judged ") && !$0.key.hasPrefix("excused ") }
        for (what, number) in counts.sorted(by: { $0.key < $1.key }) { print("    \(what): \(number)") }
        let missed = Act.allCases.map(\.rawValue).filter { coverage.counts[$0] == nil }
        if !missed.isEmpty { print("    not met by any run: \(missed.joined(separator: ", "))") }
        print("oracles:")
        var judgesEnough = true
        for oracle in Oracle.allCases {
            let judged = coverage.counts["judged \(oracle.rawValue)"] ?? 0
            let excused = coverage.counts["excused \(oracle.rawValue)"] ?? 0
            let share = Double(judged) / Double(max(1, judged + excused))
            let isEnough = plans.count < 200 || share >= oracle.floor
            if !isEnough { judgesEnough = false }
            let verdict = isEnough ? "" : ": FAILS, at least \(tenths(oracle.floor * 100)) % must be judged"
            print("    \(oracle.rawValue): \(judged) judged, \(excused) excused, \(tenths(share * 100)) %\(verdict)")
        }
        return failed.isEmpty && judgesEnough
    }

    private func tenths(_ number: Double) -> String { "\((number * 10).rounded() / 10)" }
}

import Foundation
import SimulationRuntime

/// Runs seeds, each in a copy of this process, and reports.
struct Runner {
    private let options: Options
    private let stage: Stage

    init(_ options: Options, _ stage: Stage) {
        self.options = options
        self.stage = stage
    }

    /// What a run reports through its pipe, as lines `name value`.
    struct Report {
        var hash = ""
        var findings: [String] = []
        var counts: [String: Int] = [:]
        var lines: [String] = []
        var status: Int32 = 0
    }

    func run() -> Outcome {
        var outcome = Outcome()
        for seed in options.seeds {
            let isTwice = options.twice.contains(seed)
            let report = run(seed, keepsLines: options.isTraced || isTwice, kept: options.kept)
            if options.isTraced { for line in report.lines { print(line) } }
            outcome.coverage.add(report.counts)
            outcome.hashes[seed] = report.hash
            if isTwice, !isRepeatable(seed, report) { outcome.failed.append(seed) }
            guard !report.findings.isEmpty || report.status != 0 else { continue }
            outcome.failed.append(seed)
            print("seed \(seed) fails, status \(report.status); repeat with: make simulate SEED=\(seed)")
            for finding in report.findings.prefix(5) { print("    \(finding)") }
            if options.reduces { reduce(seed, report) }
            if options.endsAtFailure { break }
        }
        return outcome
    }

    /// Whether a second run of a seed is the same.
    private func isRepeatable(_ seed: UInt64, _ report: Report) -> Bool {
        let second = run(seed, keepsLines: true, kept: options.kept)
        if second.hash == report.hash { return true }
        print("seed \(seed): two runs differ: \(report.hash) and \(second.hash)")
        let index = zip(report.lines, second.lines).enumerated().first { $1.0 != $1.1 }?.offset ?? 0
        for lines in [report.lines, second.lines] {
            print("  --")
            for line in lines[max(0, index - 4)..<min(lines.count, index + 3)] { print("    \(line)") }
        }
        return false
    }

    /// Leaves out steps of the plan as long as the run breaks the same promise, and writes the recording of the rest.
    private func reduce(_ seed: UInt64, _ report: Report) {
        func rule(_ report: Report) -> Substring {
            report.findings.first?.prefix { $0 != ":" } ?? "status \(report.status)"
        }
        let wanted = rule(report)
        let plan = Plan(seed: seed, minutes: options.minutes, people: stage.people)
        var kept = options.kept ?? Set(plan.steps.indices)
        // Halves, quarters and so on down to single steps (Zeller and Hildebrandt, "ddmin", 2002), without the complements.
        var size = max(1, kept.count / 2)
        while true {
            let steps = kept.sorted()
            for start in stride(from: 0, to: steps.count, by: size) {
                let without = kept.subtracting(steps[start..<min(start + size, steps.count)])
                if rule(run(seed, keepsLines: false, kept: without)) == wanted { kept = without }
            }
            if size == 1 { break }
            size = max(1, size / 2)
        }
        let list = kept.sorted().map(String.init).joined(separator: ",")
        let path = "simulation-\(seed).txt"
        let lines = run(seed, keepsLines: true, kept: kept).lines
        try? lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
        print(
            "    reduced to \(kept.count) of \(plan.steps.count) steps: simulate --seed \(seed) --keep '\(list)'; see \(path)"
        )
        for step in kept.sorted() { print("        \(plan.steps[step].description)") }
    }

    /// In memory if there is such a directory: elsewhere runs are the same, and take longer.
    static let directory =
        FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()

    /// Runs a seed in a copy of this process.
    func run(_ seed: UInt64, keepsLines: Bool, kept: Set<Int>?) -> Report {
        let path = "\(Self.directory)/larder-simulation-\(getpid())"
        let result = "\(path).report"
        try? FileManager.default.removeItem(atPath: path)
        try? FileManager.default.removeItem(atPath: result)
        let process = sim_fork()
        if process == 0 { runHere(seed, keepsLines, kept, path, result) }
        var report = Report()
        report.status = sim_wait(process)
        let text = (try? String(contentsOfFile: result, encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "\t", maxSplits: 2).map(String.init)
            switch (parts.first, parts.count) {
            case ("hash", 2): report.hash = parts[1]
            case ("finding", 2): report.findings.append(parts[1])
            case ("count", 3): report.counts[parts[1]] = Int(parts[2])
            case ("line", 2): report.lines.append(parts[1])
            default: break
            }
        }
        if report.hash.isEmpty { report.findings.append("report: the run has left none in \(result)") }
        try? FileManager.default.removeItem(atPath: path)
        try? FileManager.default.removeItem(atPath: result)
        return report
    }

    private func runHere(_ seed: UInt64, _ keepsLines: Bool, _ kept: Set<Int>?, _ path: String, _ result: String)
        -> Never
    {
        sim_seed(seed)
        var plan = Plan(seed: seed, minutes: options.minutes, people: stage.people)
        plan.kept = kept
        let simulation = Simulation(plan, stage, recordsLines: true)
        simulation.run(in: path)
        simulation.coverage.count("virtual seconds", Int(simulation.elapsed.components.seconds))
        simulation.coverage.count("bytes carried", simulation.network.bytesCarried)
        simulation.coverage.count("writings", simulation.ledger.writings.count)
        simulation.coverage.count("payments", simulation.ledger.payments.count)
        var lines = ["hash\t\(String(simulation.trace.hash, radix: 16))"]
        lines += simulation.findings.map { "finding\t\($0.description.replacing("\n", with: " "))" }
        lines += simulation.coverage.counts.sorted { $0.key < $1.key }.map { "count\t\($0.key)\t\($0.value)" }
        if keepsLines { lines += simulation.trace.lines.map { "line\t\($0.replacing("\n", with: " "))" } }
        try? lines.joined(separator: "\n").write(toFile: result, atomically: false, encoding: .utf8)
        sim_exit(0)
    }
}

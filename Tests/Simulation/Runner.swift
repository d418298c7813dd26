import Foundation
import SimulationRuntime

/// Runs plans, each in a copy of this process, and reports.
struct Runner {
    /// A plan and its number among all that are run.
    typealias Entry = (number: Int, plan: Plan)

    private let options: Options
    private let stage: Stage

    init(_ options: Options, _ stage: Stage) {
        self.options = options
        self.stage = stage
    }

    /// What a run reports through a file, as lines `name value`.
    struct Report {
        var hash = ""
        var findings: [String] = []
        var counts: [String: Int] = [:]
        var lines: [String] = []
        var status: Int32 = 0
    }

    func run(_ entries: [Entry]) -> Outcome {
        var outcome = Outcome()
        for (number, plan) in entries {
            let isTwice = number < options.twice
            let report = run(plan, keepsLines: options.isTraced || isTwice)
            if options.isTraced { for line in report.lines { print(line) } }
            outcome.coverage.add(report.counts)
            outcome.hashes[number] = report.hash
            if isTwice, !isRepeatable(plan, report) { outcome.failed.append(number) }
            guard !report.findings.isEmpty || report.status != 0 else { continue }
            outcome.failed.append(number)
            print("\(plan.name) fails, status \(report.status)")
            for finding in report.findings.prefix(5) { print("    \(finding)") }
            keep(options.reduces ? reduced(plan, report) : plan)
            if options.endsAtFailure { break }
        }
        return outcome
    }

    /// Whether a second run of a plan is the same.
    private func isRepeatable(_ plan: Plan, _ report: Report) -> Bool {
        let second = run(plan, keepsLines: true)
        if second.hash == report.hash { return true }
        print("\(plan.name): two runs differ: \(report.hash) and \(second.hash)")
        let index = zip(report.lines, second.lines).enumerated().first { $1.0 != $1.1 }?.offset ?? 0
        for lines in [report.lines, second.lines] {
            print("  --")
            for line in lines[max(0, index - 4)..<min(lines.count, index + 3)] { print("    \(line)") }
        }
        return false
    }

    /// Leaves out steps of a plan as long as the run breaks the same promise.
    private func reduced(_ plan: Plan, _ report: Report) -> Plan {
        func rule(_ report: Report) -> Substring {
            report.findings.first?.prefix { $0 != ":" } ?? "status \(report.status)"
        }
        let wanted = rule(report)
        var best = plan
        // Halves, quarters and so on down to single steps (Zeller and Hildebrandt, "ddmin", 2002), without the complements.
        var size = max(1, best.steps.count / 2)
        while true {
            var start = 0
            while start < best.steps.count {
                var without = best
                without.steps.removeSubrange(start..<min(start + size, best.steps.count))
                if rule(run(without, keepsLines: false)) == wanted { best = without } else { start += size }
            }
            if size == 1 { break }
            size = max(1, size / 2)
        }
        print("    reduced to \(best.steps.count) of \(plan.steps.count) steps")
        for step in best.steps { print("        \(step.description)") }
        return best
    }

    /// Writes a failed plan and the recording of its run beside this process.
    private func keep(_ plan: Plan) {
        let path = "simulation-\(plan.seed)"
        let lines = run(plan, keepsLines: true).lines
        do {
            try (plan.line() + "\n").write(toFile: "\(path).json", atomically: true, encoding: .utf8)
            try lines.joined(separator: "\n").write(toFile: "\(path).txt", atomically: true, encoding: .utf8)
            print("    repeat with: simulate --plans \(path).json; its recording is \(path).txt")
        } catch {
            print("    the plan cannot be written: \(error)")
        }
    }

    /// In memory if there is such a directory: elsewhere runs are the same, and take longer.
    static let directory =
        FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()

    /// Runs a plan in a copy of this process.
    private func run(_ plan: Plan, keepsLines: Bool) -> Report {
        let path = "\(Self.directory)/larder-simulation-\(getpid())"
        let result = "\(path).report"
        try? FileManager.default.removeItem(atPath: path)
        try? FileManager.default.removeItem(atPath: result)
        let process = sim_fork()
        if process == 0 { runHere(plan, keepsLines, path, result) }
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

    private func runHere(_ plan: Plan, _ keepsLines: Bool, _ path: String, _ result: String) -> Never {
        sim_seed(plan.seed)
        let simulation = Simulation(plan, stage, recordsLines: true)
        simulation.run(in: path)
        simulation.coverage.count("virtual seconds", Int(simulation.elapsed.components.seconds))
        simulation.coverage.count("bytes carried", simulation.network.bytesCarried)
        if simulation.roots != nil { simulation.coverage.count("runs over https") }
        simulation.coverage.count("cut handshakes", simulation.network.cutHandshakes)
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

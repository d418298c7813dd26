import Glibc
import LarderArguments
import LarderBackend
import LarderServer

/// `larder-server scenarios`: lists the scenarios, or runs a command in them.
struct ScenarioCommand {
    private var names: [String] = []
    private var command: [String]?
    private var junit: String?
    private var isTAP = false
    private var timeoutSeconds = 20

    static var options: CommandOptions<ScenarioCommand> {
        CommandOptions([
            .init(
                "OPTIONS",
                [
                    .init("--timeout", "SECONDS", 1...3_600, "for each scenario (20)") { $0.timeoutSeconds = $1 },
                    .init("--tap", "print TAP") { $0.isTAP = true },
                    .init("--junit", "FILE", "write a report in the format of JUnit", \.junit),
                ]
            )
        ])
    }

    /// - Parameter words: the arguments after `scenarios`.
    init(_ words: [String]) throws(UsageError) {
        var runs = false
        let advice = CommandUsage.table.wrong("scenarios").message
        _ = try Self.options.parse(words, into: &self, orElse: advice) { command, word, rest in
            if word == "--" {
                command.command = Array(rest)
                rest = []
            } else if word == "run", !runs, command.names.isEmpty {
                runs = true
            } else if word.hasPrefix("-") {
                return false
            } else {
                command.names.append(word)
            }
            return true
        }
        if names == ["list"], !runs { names = [] }
        let known = Scenario.all.map(\.name)
        for name in names where !known.contains(name) {
            throw .unknown("unknown scenario", name, in: known, orElse: "larder-server scenarios lists them")
        }
        guard runs == (command != nil), command?.isEmpty != true, runs || (junit == nil && !isTAP) else {
            throw CommandUsage.table.wrong("scenarios")
        }
    }

    private var chosen: [Scenario] {
        names.isEmpty ? Scenario.all : names.compactMap { name in Scenario.all.first { $0.name == name } }
    }

    /// Lists or runs.
    ///
    /// - Throws: if a server cannot be started or a file cannot be written. Exits with 1 unless every scenario was passed.
    func run() async throws {
        guard let command else {
            return Terminal.print(names.isEmpty ? list : chosen.map(\.description).joined(separator: "\n\n"))
        }
        ChildProcess.passOnSignals()
        var reports: [ScenarioReport] = []
        if isTAP { Terminal.print("TAP version 13\n1..\(chosen.count)") }
        for scenario in chosen {
            let report: ScenarioReport
            do { report = try await run(scenario, command) } catch let failure as ChildProcess.Failure {
                // The command cannot be started: no other scenario can either.
                throw failure
            } catch {
                report = ScenarioReport(failing: scenario, error)
            }
            reports.append(report)
            Terminal.print(isTAP ? report.tap(reports.count) : report.line)
        }
        if let junit { try SourceFile.write(Array(ScenarioReport.junit(reports).utf8), to: junit) }
        if !isTAP { Terminal.print(ScenarioReport.summary(reports)) }
        if !reports.allSatisfy(\.isPassed) { exit(1) }
    }

    private func run(_ scenario: Scenario, _ command: [String]) async throws -> ScenarioReport {
        let run = try ScenarioRun(scenario)
        let start = SystemSeconds.now
        do {
            let ending = try ChildProcess.run(command, run.environment, timeoutSeconds: timeoutSeconds)
            let seconds = SystemSeconds.now - start
            let result = try await run.judge()
            await run.stop()
            return ScenarioReport(result: result, ending: ending, seconds: seconds)
        } catch {
            await run.stop()
            throw error
        }
    }

    private var list: String {
        let width = Scenario.all.map(\.name.count).max() ?? 0
        let lines = Scenario.all.map { scenario in
            scenario.name + String(repeating: " ", count: width + 2 - scenario.name.count)
                + "\(scenario.problem)\n" + String(repeating: " ", count: width + 2) + "→ \(scenario.requirement)"
        }
        return (lines + ["", "\(Scenario.all.count) scenarios; larder-server scenarios NAME shows the task of one"])
            .joined(separator: "\n")
    }
}

/// Monotonic seconds, for durations that are printed.
private enum SystemSeconds {
    static var now: Double {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

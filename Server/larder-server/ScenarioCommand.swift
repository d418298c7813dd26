import Glibc
import LarderArguments
import LarderServer
import LarderTime

/// `larder-server scenarios`: lists the scenarios, or runs a command in them.
struct ScenarioCommand {
    private var names: [String] = []
    private var command: [String]?
    private var junit: String?
    private var isTAP = false
    private var timeoutSeconds = 20
    /// The user's own API; nil: the demo.
    private var routes: String?
    private var data: String?
    private var readPath: String?
    private var writePath: String?
    /// A file with the user's own scenarios.
    private var file: String?
    private var all = Scenario.all

    static var options: CommandOptions<ScenarioCommand> {
        CommandOptions([
            .init(
                "OPTIONS",
                [
                    .init("--timeout", "SECONDS", 1...3_600, "for each scenario (20)") { $0.timeoutSeconds = $1 },
                    .init("--tap", "print TAP") { $0.isTAP = true },
                    .init("--junit", "FILE", "write a report in the format of JUnit", \.junit),
                    .init("--routes", "PATH", "in your own API, as of larder-server --routes", \.routes),
                    .init("--data", "DIR", "in your own API, as of larder-server --data", \.data),
                    .init("--read", "PATH", "the cases of GET PATH in your own API", \.readPath),
                    .init("--write", "PATH", "the cases of POST PATH in your own API", \.writePath),
                    .init("--scenarios", "FILE", "your own cases, in JSON", \.file),
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
        for (option, path) in [("--read", readPath), ("--write", writePath)] where path?.hasPrefix("/") == false {
            throw UsageError(message: "\(option) requires a path such as /books/1, not '\(path ?? "")'")
        }
        if readPath != nil || writePath != nil || file != nil {
            do {
                all = try Scenario.ofAnyAPI(reading: readPath, writingTo: writePath)
                if let file { all += try Scenario.own(file) }
            } catch { throw UsageError(message: "\(error)") }
        } else if routes != nil || data != nil {
            throw UsageError(message: "cases of your own API need --read PATH, --write PATH or --scenarios FILE")
        }
        let known = all.map(\.name)
        let missing = [("--read", readPath), ("--write", writePath)].filter { $0.1 == nil }.map(\.0)
        for name in names where !known.contains(name) {
            if file != nil || missing.count < 2, Scenario.all.contains(where: { $0.name == name }) {
                let options = missing.map { $0 + " PATH" }.joined(separator: " or ")
                throw UsageError(message: "the scenario '\(name)' is one of the demo, or needs \(options)")
            }
            throw .unknown("unknown scenario", name, in: known, orElse: "larder-server scenarios lists them")
        }
        guard runs == (command != nil), command?.isEmpty != true, runs || (junit == nil && !isTAP) else {
            throw CommandUsage.table.wrong("scenarios")
        }
    }

    private var chosen: [Scenario] {
        names.isEmpty ? all : names.compactMap { name in all.first { $0.name == name } }
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
            do { report = try await run(scenario, command) } catch let error
                where error is ChildProcess.Failure || error is FileError
            {
                // The command or the server cannot be started: in no other scenario either.
                throw error
            } catch {
                report = .failing(scenario, error)
            }
            reports.append(report)
            Terminal.print(isTAP ? report.tap(reports.count) : report.line)
        }
        if let junit { try SourceFile.write(Array(ScenarioReport.junit(reports).utf8), to: junit) }
        if !isTAP { Terminal.print(ScenarioReport.summary(reports)) }
        if !reports.allSatisfy(\.isPassed) { exit(1) }
    }

    private func run(_ scenario: Scenario, _ command: [String]) async throws -> ScenarioReport {
        let run = try ScenarioRun(scenario, routes: routes, data: data)
        let clock = SystemMonotonicClock()
        let start = clock.uptime
        do {
            let ending = try ChildProcess.run(command, run.environment, timeoutSeconds: timeoutSeconds)
            let seconds = (clock.uptime - start) / .seconds(1)
            let result = try await run.judge(ending.isSuccess)
            await run.stop()
            return ScenarioReport(result: result, ending: ending, seconds: seconds)
        } catch {
            await run.stop()
            throw error
        }
    }

    private var list: String {
        let width = all.map(\.name.count).max() ?? 0
        let lines = all.map { scenario in
            scenario.name + String(repeating: " ", count: width + 2 - scenario.name.count)
                + "\(scenario.problem)\n" + String(repeating: " ", count: width + 2) + "→ \(scenario.requirement)"
        }
        return (lines + ["", "\(all.count) scenarios; larder-server scenarios NAME shows the task of one"])
            .joined(separator: "\n")
    }
}

import Larder
import LarderCoding
import LarderDemo

/// Reports earlier runs and their measurements.
struct RunReport {
    let history: RunHistory
    let terminal: Terminal
    let now: WallTime

    private static let shownEventsMaximum = 8

    // MARK: Runs

    var finding: DoctorCommand.Finding {
        let ended = history.ended
        guard !ended.isEmpty else {
            let isHealthy = history.problems.isEmpty
            let text = isHealthy ? "none recorded yet" : history.problems.joined(separator: " ")
            return DoctorCommand.Finding(name: "runs", text: text, isHealthy: isHealthy)
        }
        var parts = ["\(ended.count) recorded, the first \(TimeText.text(from: ended[0].startedAt, to: now))"]
        let interrupted = history.interrupted
        if let latest = interrupted.last {
            parts.append("\(interrupted.count) interrupted, the last: \(title(latest))")
        } else {
            parts.append("all completed")
        }
        parts += history.problems
        return DoctorCommand.Finding(
            name: "runs",
            text: parts.joined(separator: "; "),
            isHealthy: !isRecent(interrupted.last) && history.problems.isEmpty,
            details: [
                ("recorded", .integer(Int64(ended.count))), ("interrupted", .integer(Int64(interrupted.count))),
                ("shown", shown.map(json)),
            ]
        )
    }

    /// An interrupted run counts as a problem for one day.
    private func isRecent(_ run: RunHistory.Run?) -> Bool {
        run.map { now - $0.startedAt < .seconds(86_400) } ?? false
    }

    /// The run that is shown: the last interrupted one, otherwise the last.
    private var shown: RunHistory.Run? { history.interrupted.last ?? history.ended.last }

    private func title(_ run: RunHistory.Run) -> String {
        "larder \(run.command ?? "…") (\(TimeText.text(from: run.startedAt, to: now)))"
    }

    private func json(_ run: RunHistory.Run) -> JSONValue {
        var members: [(String, JSONValue?)] = [
            ("command", run.command.map { .string($0) }), ("startedAt", .string(run.startedAt.rfc3339())),
        ]
        if case .finished(let time, let message) = run.end {
            members += [("endedAt", .string(time.rfc3339())), ("failure", message.isEmpty ? nil : .string(message))]
        }
        let events = run.records.suffix(Self.shownEventsMaximum).map { record in
            JSONValue.members([
                ("at", .string(record.wall.rfc3339())), ("event", .string(EventText.text(record))),
            ])
        }
        return .members(members + [("events", .array(events))])
    }

    /// Prints the last events of the shown run, one line each.
    private func printLastRun() {
        guard let run = shown else { return }
        let how: String
        switch run.end {
        case .finished(let time, let message):
            let length = TimeText.text(time - run.startedAt)
            how = message.isEmpty ? "completed after \(length)" : "failed after \(length)"
        case .running: how = "is running"
        case .interrupted:
            how = terminal.paint("was interrupted (stopped, killed or crashed). Its last events:", .yellow)
        }
        terminal.line()
        terminal.line("\(title(run)) \(how)")
        for record in run.records.suffix(Self.shownEventsMaximum) {
            let time = TimeText.text(record.wall - run.startedAt)
            terminal.line(
                "  " + terminal.paint(TextWidth.pad("+ " + time, 10), .dim) + " "
                    + TextWidth.fit(EventText.text(record), 100)
            )
        }
    }

    // MARK: Questions

    /// Prints what the file of an app's flight recorder has: the last run, and the answers.
    static func show(_ file: String, _ terminal: Terminal) throws {
        let report = RunReport(history: RunHistory(paths: [file]), terminal: terminal, now: SystemWallClock().now)
        if let problem = report.history.problems.first { throw Failure(problem) }
        guard terminal.isJSON else { return report.printRuns() }
        terminal.json(.members([("runs", report.finding.details.last?.1)] + (try report.measurements)))
    }

    /// The answers and the totals of all runs, for `--json`.
    var measurements: [(String, JSONValue?)] {
        get throws {
            let answers = DoctorQuestions(history).answers.map { ($0.name, JSONValue.string($0.text)) }
            let totals = try JSONParser.parse(Array(history.totals.json.utf8))
            return [("questions", .members(answers)), ("telemetry", totals)]
        }
    }

    /// Prints the last run, and the answers, each under its name.
    func printRuns() {
        printLastRun()
        terminal.line()
        for answer in DoctorQuestions(history).answers {
            terminal.line(terminal.paint(answer.name, .dim))
            terminal.line("  " + answer.text)
        }
    }
}

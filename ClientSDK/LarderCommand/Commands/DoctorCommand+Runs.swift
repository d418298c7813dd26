import Larder
import LarderCoding
import LarderDemo

/// Reports earlier runs and their measurements.
extension DoctorCommand {
    private static let shownEventsMaximum = 8

    // MARK: Runs

    func runs(_ history: RunHistory) -> Finding {
        let ended = history.ended
        guard !ended.isEmpty else {
            let isHealthy = history.problems.isEmpty
            let text = isHealthy ? "none recorded yet" : history.problems.joined(separator: " ")
            return Finding(name: "runs", text: text, isHealthy: isHealthy)
        }
        var parts = ["\(ended.count) recorded, the first \(TimeText.text(from: ended[0].startedAt, to: context.now))"]
        let interrupted = history.interrupted
        if let latest = interrupted.last {
            parts.append("\(interrupted.count) interrupted, the last: \(title(latest))")
        } else {
            parts.append("all completed")
        }
        parts += history.problems
        return Finding(
            name: "runs",
            text: parts.joined(separator: "; "),
            isHealthy: !isRecent(interrupted.last) && history.problems.isEmpty,
            details: [
                ("recorded", .integer(Int64(ended.count))), ("interrupted", .integer(Int64(interrupted.count))),
                ("shown", shown(history).map(json)),
            ]
        )
    }

    /// An interrupted run counts as a problem for one day.
    private func isRecent(_ run: RunHistory.Run?) -> Bool {
        run.map { context.now - $0.startedAt < .seconds(86_400) } ?? false
    }

    /// The run that is shown: the last interrupted one, otherwise the last.
    private func shown(_ history: RunHistory) -> RunHistory.Run? { history.interrupted.last ?? history.ended.last }

    private func title(_ run: RunHistory.Run) -> String {
        "larder \(run.command ?? "…") (\(TimeText.text(from: run.startedAt, to: context.now)))"
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

    /// Prints the last events of a run, one line each.
    func printLastRun(_ history: RunHistory) {
        guard let run = shown(history) else { return }
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

    /// Prints what an app's flight recorder has: its last run, and the answers.
    func report(_ history: RunHistory) throws {
        let answers = DoctorQuestions(history).answers
        if terminal.isJSON {
            let totals = try JSONParser.parse(Array(history.totals.json.utf8))
            let texts = JSONValue.members(answers.map { ($0.name, .string($0.text)) })
            return terminal.json(
                .members([("runs", runs(history).details.last?.1), ("questions", texts), ("telemetry", totals)])
            )
        }
        printLastRun(history)
        printAnswers(answers)
    }

    /// Prints the answers, each under its name.
    func printAnswers(_ answers: [DoctorQuestions.Answer]) {
        terminal.line()
        for answer in answers {
            terminal.line(terminal.paint(answer.name, .dim))
            terminal.line("  " + TextWidth.clean(answer.text))
        }
    }
}

import Larder
import LarderCoding
import LarderDemo

/// Reports earlier runs and their measurements.
extension DoctorCommand {
    /// The maximum number of events that are shown of a run.
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

    // MARK: Totals

    /// Prints the measurements of all recorded runs.
    func printTotals(_ totals: TelemetryTotals) {
        let features = totals.features.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let width = features.map { $0.0.utf8.count }.max() ?? 3
        var rows: [(String, String)] = []
        for (name, feature) in features + [("all", totals.all)] {
            for (tier, reads) in feature.reads.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                rows.append(("reads", "\(TextWidth.pad(name, width))  \(tier.rawValue) \(Self.rate(reads))"))
            }
        }
        for (name, feature) in features where feature.requests.count > 0 {
            let failed = feature.requestsFailed > 0 ? ", \(feature.requestsFailed) failed" : ""
            rows.append(
                ("requests", "\(TextWidth.pad(name, width))  \(Self.latency(feature.requests))\(failed)")
            )
        }
        for (name, feature) in features where feature.firstContent.count > 0 {
            rows.append(("content", "\(TextWidth.pad(name, width))  \(Self.latency(feature.firstContent))"))
        }
        for (stage, times) in totals.images.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            rows.append(("images", "\(TextWidth.pad(stage.rawValue, width))  \(Self.latency(times))"))
        }
        rows += summary(totals)
        terminal.line()
        guard !rows.isEmpty else { return terminal.line("No measurements yet.") }
        terminal.line("measured in these runs:")
        var last = ""
        for (name, text) in rows {
            terminal.line("  " + terminal.paint(TextWidth.pad(name == last ? "" : name, 9), .dim) + " " + text)
            last = name
        }
    }

    private func summary(_ totals: TelemetryTotals) -> [(String, String)] {
        var rows: [(String, String)] = []
        let bytes = totals.bytesBySource.sorted { $0.key.rawValue < $1.key.rawValue }
        if !bytes.isEmpty {
            let parts = bytes.map { "\($0.key.rawValue) \(SizeText.text(Int64($0.value)))" }
            rows.append(("bytes", parts.joined(separator: ", ")))
        }
        let all = totals.all
        if all.bytesSent > 0 { rows.append(("bytes", "sent \(SizeText.text(Int64(all.bytesSent)))")) }
        if all.revalidations > 0 {
            let saved = all.bytesSaved > 0 ? ", \(SizeText.text(Int64(all.bytesSaved))) saved" : ""
            rows.append(("304", "\(all.revalidations) not modified\(saved), \(all.merged) merged"))
        }
        let outcomes = (totals.statuses.sorted { $0.key < $1.key } + totals.failures.sorted { $0.key < $1.key })
            .map { "\($0.value) \($0.key)" }
        if !outcomes.isEmpty { rows.append(("replies", outcomes.joined(separator: ", "))) }
        return rows
    }

    /// `3 of 4 (75 %)`.
    private static func rate(_ reads: TelemetryTotals.Reads) -> String {
        let all = reads.hits + reads.misses
        return "\(reads.hits) of \(all) (\(all == 0 ? "–" : "\(reads.hits * 100 / all) %"))"
    }

    private static func latency(_ times: TelemetryTotals.Histogram) -> String {
        let parts = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)].compactMap { name, share in
            times.percentile(share).map { "\(name) \(TimeText.text($0))" }
        }
        return "\(TextWidth.pad("\(times.count) ×", 6)) \(parts.joined(separator: ", "))"
    }
}

import Larder
import LarderCoding
import LarderTime

/// What earlier runs have left: how they ended, and what they add up to.
extension DoctorCommand {
    /// How many events are shown of a run.
    private static let eventsShown = 8

    // MARK: Runs

    func runs(_ history: RunHistory) -> Finding {
        let ended = history.ended
        guard !ended.isEmpty else {
            let isWell = history.problems.isEmpty
            let text = isWell ? "none is known yet" : history.problems.joined(separator: " ")
            return Finding(name: "runs", text: text, isWell: isWell)
        }
        var parts = ["\(ended.count) known, since \(Ages.text(from: ended[0].began, to: kitchen.now))"]
        let sudden = history.sudden
        if let latest = sudden.last {
            parts.append("\(sudden.count) of them ended suddenly, the last \(title(latest))")
        } else {
            parts.append("all ended in order")
        }
        parts += history.problems
        return Finding(
            name: "runs",
            text: parts.joined(separator: "; "),
            isWell: !isRecent(sudden.last) && history.problems.isEmpty,
            details: [
                ("known", .integer(Int64(ended.count))), ("sudden", .integer(Int64(sudden.count))),
                ("shown", shown(history).map(json)),
            ]
        )
    }

    /// What happened longer ago is told of, and is no reason to worry.
    private func isRecent(_ run: RunHistory.Run?) -> Bool {
        run.map { kitchen.now - $0.began < .seconds(86_400) } ?? false
    }

    /// The run that is worth a look: what ended suddenly, otherwise the last.
    private func shown(_ history: RunHistory) -> RunHistory.Run? { history.sudden.last ?? history.ended.last }

    private func title(_ run: RunHistory.Run) -> String {
        "larder \(run.command ?? "…") (\(Ages.text(from: run.began, to: kitchen.now)))"
    }

    private func json(_ run: RunHistory.Run) -> JSONValue {
        var members: [(String, JSONValue?)] = [
            ("command", run.command.map { .string($0) }), ("began", .string(run.began.rfc3339())),
        ]
        if case .inOrder(let time, let words) = run.end {
            members += [("ended", .string(time.rfc3339())), ("failure", words.isEmpty ? nil : .string(words))]
        }
        let events = run.records.suffix(Self.eventsShown).map { record in
            JSONValue.members([
                ("at", .string(record.wall.rfc3339())), ("event", .string(EventWords.text(record))),
            ])
        }
        return .members(members + [("events", .array(events))])
    }

    /// What a run did last, a line an event.
    func tellLastRun(_ history: RunHistory) {
        guard let run = shown(history) else { return }
        let how: String
        switch run.end {
        case .inOrder(let time, let words):
            let length = Ages.text(time - run.began)
            how = words.isEmpty ? "ended in order after \(length)" : "ended with an error after \(length)"
        case .none: how = "is running"
        case .sudden:
            how = terminal.paint("ended suddenly: it was stopped, killed, or crashed. Before that:", .yellow)
        }
        terminal.line()
        terminal.line("\(title(run)) \(how)")
        for record in run.records.suffix(Self.eventsShown) {
            let time = Ages.text(record.wall - run.began)
            terminal.line(
                "  " + terminal.paint(TextWidth.pad("+ " + time, 10), .dim) + " "
                    + TextWidth.fit(EventWords.text(record), 100)
            )
        }
    }

    // MARK: Totals

    /// What all runs that are known have done.
    func tellTotals(_ totals: TelemetryTotals) {
        let features = totals.features.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        let width = features.map { $0.0.utf8.count }.max() ?? 3
        var rows: [(String, String)] = []
        for (name, feature) in features + [("all", totals.all)] {
            for (tier, reads) in feature.reads.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                rows.append(("reads", "\(TextWidth.pad(name, width))  \(tier.rawValue) \(Self.rate(reads))"))
            }
        }
        for (name, feature) in features where feature.requests.count > 0 {
            let failed = feature.requestsFailed > 0 ? ", \(feature.requestsFailed) without a good reply" : ""
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
        guard !rows.isEmpty else { return terminal.line("Nothing was measured yet.") }
        terminal.line("measured in these runs")
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
            let parts = bytes.map { "\($0.key.rawValue) \(Sizes.text(Int64($0.value)))" }
            rows.append(("bytes", parts.joined(separator: ", ")))
        }
        let all = totals.all
        if all.bytesSent > 0 { rows.append(("bytes", "sent \(Sizes.text(Int64(all.bytesSent)))")) }
        if all.revalidations > 0 {
            let saved = all.bytesSaved > 0 ? ", \(Sizes.text(Int64(all.bytesSaved))) saved" : ""
            rows.append(("spared", "\(all.revalidations) not modified\(saved), \(all.merged) merged"))
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

    private static func latency(_ times: LatencyHistogram) -> String {
        let parts = [("half within", 0.5), ("90 %", 0.9), ("99 %", 0.99)].compactMap { name, share in
            times.percentile(share).map { "\(name) \(Ages.text($0))" }
        }
        return "\(TextWidth.pad("\(times.count) ×", 6)) \(parts.joined(separator: ", "))"
    }
}

import LarderEngine
import LarderHTTP
import LarderTime

extension ConductReport {
    /// The report on the entries of a journal, with the verdicts on them.
    ///
    /// - Parameter dropped: the number of entries that the journal has not kept.
    init(_ entries: [JournalEntry], dropped: Int) {
        self.dropped = dropped
        // The latest verdict of each loop, by its first entry: a loop is one finding.
        var loops: [Int: Finding] = [:]
        for entry in entries where entry.isExchange {
            count(entry)
            for verdict in entry.verdicts {
                guard let rule = verdict.rule else { continue }
                let detail = "\(Secrets.masked(target: entry.request.targetText)): \(verdict.text)"
                let finding = Finding(
                    rule: rule,
                    entries: [verdict.other, entry.number].compactMap { $0 },
                    detail: detail
                )
                if rule == .repeatedInLoop, let first = verdict.other {
                    loops[first] = finding
                } else {
                    findings.append(finding)
                }
            }
        }
        findings += loops.sorted { $0.key < $1.key }.map(\.value)
        inspectJitter(entries)
        inspectPolling(entries)
    }

    private mutating func count(_ entry: JournalEntry) {
        exchanges += 1
        bytesSent += entry.bytesSent
        bytesSavedByCoding += entry.bytesSavedByCoding
        bytesSaved += entry.verdicts.first { $0.savedBytes > 0 }?.savedBytes ?? 0
        // Several reasons do not waste the same bytes twice.
        bytesWasted += entry.verdicts.map(\.wastedBytes).max() ?? 0
        timeWasted += entry.verdicts.map(\.wastedTime).max() ?? .zero
        guard entry.outcome == "complete" else {
            unanswered += 1
            return
        }
        switch entry.status {
        case 200 where entry.request.method == .get: full += 1
        case 304 where entry.request.method == .get: notModified += 1
        case 200..<300 where !entry.request.method.isSafe: writes += 1
        case 400..<500: clientErrors += 1
        case 500...: serverErrors += 1
        default: break
        }
    }

    private mutating func add(_ rule: ConductReport.Rule, _ entries: [Int], _ detail: String) {
        findings.append(.init(rule: rule, entries: entries, detail: detail))
    }

    private mutating func inspectJitter(_ entries: [JournalEntry]) {
        /// The retries of each client. Requests that a client has sent together after one wait are one retry.
        var retries: [String: [(number: Int, gap: Duration, at: MonotonicTime)]] = [:]
        let late = entries.filter { $0.retryGap ?? .zero > .milliseconds(50) }
        for entry in late.sorted(by: { $0.startedInWorld < $1.startedInWorld }) {
            let gap = entry.retryGap ?? .zero
            if let last = retries[entry.client]?.last, entry.startedInWorld - last.at <= gap / 100 { continue }
            retries[entry.client, default: []].append((entry.number, gap, entry.startedInWorld))
        }
        for (_, gaps) in retries.sorted(by: { $0.key < $1.key }) {
            // Four retries at intervals equal to one percent, among few others of that length, are not a coincidence.
            let sorted = gaps.sorted { $0.gap < $1.gap }
            for (start, first) in sorted.enumerated() {
                let group = sorted[start...].prefix { $0.gap - first.gap <= first.gap / 100 }
                let similar = sorted.count { $0.gap * 2 >= first.gap && $0.gap <= first.gap * 2 }
                guard group.count >= 4, group.count * 2 >= similar else { continue }
                add(
                    .retriedWithoutJitter,
                    group.map(\.number).sorted(),
                    "each was sent \(first.gap) after the failure or the end of its Retry-After"
                )
                break
            }
        }
    }

    /// Frames of a live channel that were lost or late.
    private struct Loss {
        /// When the latest of them was sent.
        let at: MonotonicTime
        /// When the first read after it ended. A client cannot know whether the frames until then are in what it has read, and may read
        /// again for each.
        var madeUpAt: MonotonicTime?

        func mayHide(_ frame: JournalEntry) -> Bool { madeUpAt.map { frame.endedInWorld <= $0 } ?? true }

        mutating func note(_ read: JournalEntry) {
            if madeUpAt == nil, read.startedInWorld >= at { madeUpAt = read.endedInWorld }
        }
    }

    private mutating func inspectPolling(_ entries: [JournalEntry]) {
        // By the client: another device of the person has no channel.
        var lastFrame: [String: (connection: Int, at: MonotonicTime, end: ChannelEnd)] = [:]
        /// The reads that are needed, because frames before them were lost or late.
        var gaps: [String: Int] = [:]
        var losses: [String: Loss] = [:]
        var polls: [String: [JournalEntry]] = [:]
        for entry in entries {
            if case .frame(let frame) = entry.kind {
                let client = entry.client
                let isDisturbed = frame.injectedFault.map { $0 != "doubled" } ?? false
                if isDisturbed { losses[client] = Loss(at: entry.endedInWorld) }
                if losses[client]?.mayHide(entry) ?? false || lastFrame[client]?.connection != entry.connection {
                    gaps[client, default: 0] += 1
                }
                lastFrame[client] = (entry.connection, entry.endedInWorld, frame.end)
            } else if entry.request.readsChangeFeed, entry.status == 200,
                let frame = lastFrame[entry.client]
            {
                let client = entry.client
                losses[client]?.note(entry)
                guard entry.startedInWorld - frame.at < .seconds(30), !frame.end.isBefore(entry.startedInWorld)
                else { continue }
                if let count = gaps[client], count > 0 {
                    gaps[client] = count - 1
                } else {
                    polls[client, default: []].append(entry)
                }
            }
        }
        for (_, entries) in polls.sorted(by: { $0.key < $1.key }) where entries.count >= 5 {
            add(
                .polledBesideLive,
                entries.map(\.number),
                "\(entries[0].request.pathText): \(entries.count) reads beside the client's own live channel"
            )
        }
    }
}

import LarderBackend
import LarderEngine
import LarderHTTP
import LarderTime

/// Analyses a journal for the behaviour of its clients.
struct ConductInspector {
    private let entries: [JournalEntry]
    private let judgements: [Int: ExchangeJudge.Judgement]
    private var findings: [ConductReport.Finding] = []

    /// Reports on entries with their judgements, by number.
    static func inspect(_ entries: [JournalEntry], _ judgements: [Int: ExchangeJudge.Judgement]) -> ConductReport {
        var inspector = ConductInspector(entries: entries, judgements: judgements)
        return inspector.run()
    }

    private mutating func run() -> ConductReport {
        var retryGaps: [(number: Int, gap: Duration)] = []
        var waste: [Int: (bytes: Int, time: Duration)] = [:]
        var (sent, saved, savedByCoding) = (0, 0, 0)
        // The latest verdict of each loop, by its first entry: a loop is one finding.
        var loops: [Int: (number: Int, detail: String)] = [:]
        let exchanges = entries.filter(\.isExchange)
        let answered = exchanges.filter { $0.outcome == "complete" }
        let reads = answered.filter { $0.request.method == .get }
        for entry in exchanges {
            sent += entry.bytesSent
            savedByCoding += entry.bytesSavedByCoding
            guard let judgement = judgements[entry.number] else { continue }
            if let gap = judgement.retryGap { retryGaps.append((entry.number, gap)) }
            saved += judgement.verdicts.first { $0.verdict.savedBytes > 0 }?.verdict.savedBytes ?? 0
            for (number, verdict) in judgement.verdicts {
                // Several reasons do not waste the same bytes twice.
                let known = waste[number] ?? (0, .zero)
                waste[number] = (max(known.bytes, verdict.wastedBytes), max(known.time, verdict.wastedTime))
                guard let rule = verdict.rule else { continue }
                let detail = "\(Secrets.masked(target: entry.request.targetText)): \(verdict.text)"
                if verdict.kind == .loop, let first = verdict.other {
                    loops[first] = (number, detail)
                } else {
                    add(rule, [verdict.other, number].compactMap { $0 }, detail)
                }
            }
        }
        for (first, last) in loops.sorted(by: { $0.key < $1.key }) {
            add(.repeatedInLoop, [first, last.number], last.detail)
        }
        inspectJitter(retryGaps)
        inspectPolling()
        return ConductReport(
            findings: findings,
            exchanges: exchanges.count,
            full: reads.count { $0.status == 200 },
            notModified: reads.count { $0.status == 304 },
            writes: answered.count { !$0.request.method.isSafe && (200..<300).contains($0.status) },
            clientErrors: answered.count { (400..<500).contains($0.status) },
            serverErrors: answered.count { $0.status >= 500 },
            unanswered: exchanges.count - answered.count,
            bytesSent: sent,
            bytesSaved: saved,
            bytesSavedByCoding: savedByCoding,
            bytesWasted: waste.values.map(\.bytes).reduce(0, +),
            timeWasted: waste.values.map(\.time).reduce(.zero, +)
        )
    }

    private mutating func add(_ rule: ConductReport.Rule, _ entries: [Int], _ detail: String) {
        findings.append(.init(rule: rule, entries: entries, detail: detail))
    }

    private mutating func inspectJitter(_ gaps: [(number: Int, gap: Duration)]) {
        // Four retries at intervals equal to one percent, among few others of that length, are not a coincidence.
        let sorted = gaps.filter { $0.gap > .milliseconds(50) }.sorted { $0.gap < $1.gap }
        for (start, first) in sorted.enumerated() {
            let group = sorted[start...].prefix { $0.gap - first.gap <= first.gap / 100 }
            let similar = sorted.count { $0.gap * 2 >= first.gap && $0.gap <= first.gap * 2 }
            guard group.count >= 4, group.count * 2 >= similar else { continue }
            add(.retriedWithoutJitter, group.map(\.number).sorted(), "each was sent \(first.gap) after the failure")
            return
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

    private mutating func inspectPolling() {
        var lastFrame: [Int64: (connection: Int, at: MonotonicTime)] = [:]
        /// The reads that are needed, because frames before them were lost or late.
        var gaps: [Int64: Int] = [:]
        var losses: [Int64: Loss] = [:]
        var polls: [Int64: [JournalEntry]] = [:]
        for entry in entries {
            if case .frame(let frame) = entry.kind {
                let isDisturbed = frame.injectedFault.map { $0 != "doubled" } ?? false
                if isDisturbed { losses[entry.user] = Loss(at: entry.endedInWorld) }
                if losses[entry.user]?.mayHide(entry) ?? false || lastFrame[entry.user]?.connection != entry.connection
                {
                    gaps[entry.user, default: 0] += 1
                }
                lastFrame[entry.user] = (entry.connection, entry.endedInWorld)
            } else if entry.request.path.elementsEqual("/v1/changes".utf8), entry.status == 200,
                let frame = lastFrame[entry.user]
            {
                losses[entry.user]?.note(entry)
                guard entry.startedInWorld - frame.at < .seconds(30) else { continue }
                if let count = gaps[entry.user], count > 0 {
                    gaps[entry.user] = count - 1
                } else {
                    polls[entry.user, default: []].append(entry)
                }
            }
        }
        for (_, entries) in polls.sorted(by: { $0.key < $1.key }) where entries.count >= 5 {
            add(
                .polledBesideLive,
                entries.map(\.number),
                "\(entries.count) reads of the change feed beside a live channel"
            )
        }
    }
}

import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// A report of client behaviour: needless, premature and duplicate requests.
public struct ConductReport: Sendable, Hashable, CustomStringConvertible {
    /// The checked rules.
    public enum Rule: String, Sendable, Hashable, CaseIterable {
        /// A request was repeated before the time in `Retry-After`.
        case retriedTooSoon
        /// Retries of several requests had the same interval: no jitter.
        case retriedWithoutJitter
        /// A full reply was sent although the client had received the same ETag before.
        case downloadedTwice
        /// A resource was requested again while it was fresh.
        case refetchedFresh
        /// A resource was requested again while the first request was in flight.
        case duplicateInFlight
        /// A transfer had no idempotency key.
        case keyMissing
        /// The same body was sent with another key shortly after a failure.
        case keyChanged
        /// The change feed was polled repeatedly beside an open live channel.
        case polledBesideLive
    }

    /// One finding.
    public struct Finding: Sendable, Hashable {
        /// The violated rule.
        public let rule: Rule
        /// The numbers of the entries.
        public let entries: [Int]
        /// A description in one sentence.
        public let detail: String
    }

    /// All findings, in the order of the journal.
    public let findings: [Finding]
    /// The number of exchanges.
    public let exchanges: Int
    /// The number of reads answered with a full reply.
    public let full: Int
    /// The number of reads answered with 304.
    public let notModified: Int
    /// The number of exchanges answered with 4xx.
    public let clientErrors: Int
    /// The number of exchanges answered with 5xx.
    public let serverErrors: Int
    /// The number of exchanges without a complete reply.
    public let unanswered: Int
    /// Bytes of heads and bodies that were sent.
    public let bytesSent: Int
    /// Body bytes that 304 replies saved.
    public let bytesSaved: Int
    /// Body bytes that compression saved.
    public let bytesSavedByCoding: Int

    /// The report as a page of text.
    public var description: String {
        var lines = [
            "\(exchanges) exchanges: \(full) full replies, \(notModified) not modified",
            "\(clientErrors) client errors, \(serverErrors) server errors, \(unanswered) not answered in full",
            "\(bytesSent) bytes sent, \(bytesSaved) bytes saved by validators and \(bytesSavedByCoding) by compression",
            "",
        ]
        if findings.isEmpty { lines.append("No findings.") }
        for rule in Rule.allCases {
            let found = findings.filter { $0.rule == rule }
            guard !found.isEmpty else { continue }
            lines.append("\(rule.rawValue): \(found.count)")
            for finding in found.prefix(10) {
                lines.append("  " + finding.entries.map { "#\($0)" }.joined(separator: " ") + "  " + finding.detail)
            }
            if found.count > 10 { lines.append("  … and \(found.count - 10) more") }
        }
        return lines.joined(separator: "\n")
    }

    /// - Parameter newest: the maximum number of findings per rule, newest first; nil for all. All are counted.
    func json(newest: Int? = nil) -> JSONValue {
        var told = findings
        if let newest {
            told = Rule.allCases.flatMap { rule in findings.filter { $0.rule == rule }.suffix(newest) }
        }
        let counts = Rule.allCases.compactMap { rule -> JSONObject.Member? in
            let count = findings.count { $0.rule == rule }
            return count == 0 ? nil : .init(name: rule.rawValue, value: .integer(Int64(count)))
        }
        return .members([
            "exchanges": .integer(Int64(exchanges)), "full": .integer(Int64(full)),
            "notModified": .integer(Int64(notModified)), "clientErrors": .integer(Int64(clientErrors)),
            "serverErrors": .integer(Int64(serverErrors)), "unanswered": .integer(Int64(unanswered)),
            "bytesSent": .integer(Int64(bytesSent)),
            "bytesSaved": .integer(Int64(bytesSaved)),
            "bytesSavedByCoding": .integer(Int64(bytesSavedByCoding)),
            "counts": .object(JSONObject(counts)),
            "findings": .array(
                told.map { finding in
                    .members([
                        "rule": .string(finding.rule.rawValue),
                        "entries": .array(finding.entries.map { .integer(Int64($0)) }),
                        "detail": .string(finding.detail),
                    ])
                }
            ),
        ])
    }
}

/// Analyses a journal for the behaviour of its clients.
struct ConductInspector {
    private struct Download {
        let tag: String
        let bytes: Int
        let at: WallTime
        let freshFor: Duration
    }

    private struct Refusal {
        let number: Int
        let at: MonotonicTime
        let until: MonotonicTime
    }

    let entries: [JournalEntry]
    private var findings: [ConductReport.Finding] = []

    init(_ entries: [JournalEntry]) { self.entries = entries }

    static func inspect(_ entries: [JournalEntry]) -> ConductReport {
        var inspector = ConductInspector(entries)
        return inspector.run()
    }

    private mutating func run() -> ConductReport {
        var downloads: [String: Download] = [:]
        var refusals: [String: Refusal] = [:]
        var running: [String: [JournalEntry]] = [:]
        var failedBodies: [String: (number: Int, key: String)] = [:]
        var retryGaps: [(number: Int, gap: Duration)] = []
        var (sent, saved, savedByCoding) = (0, 0, 0)
        let exchanges = entries.filter(\.isExchange)
        let answered = exchanges.filter { $0.outcome == "complete" }
        let reads = answered.filter { $0.request.method == .get }
        for entry in exchanges.sorted(by: { ($0.started, $0.number) < ($1.started, $1.number) }) {
            let device = entry.device
            let resource = device + " " + entry.request.targetText
            let request = device + " " + entry.request.method.rawValue + " " + entry.request.targetText
            sent += entry.bytesSent
            savedByCoding += entry.bytesSavedByCoding
            inspectRetries(entry, request, &refusals, &retryGaps)
            inspectConcurrency(entry, request, &running)
            if entry.request.method == .get {
                if entry.status == 304 {
                    saved += downloads[resource]?.bytes ?? 0
                } else if entry.status == 200 {
                    inspectDownload(entry, resource, downloads[resource])
                }
                if let tag = entry.replyField("etag"), entry.isComplete, entry.trace?.ending == nil {
                    let bytes = entry.status == 200 ? entry.bodyBytes : downloads[resource]?.bytes ?? 0
                    downloads[resource] = Download(
                        tag: tag,
                        bytes: bytes,
                        at: entry.at,
                        freshFor: Self.freshness(entry)
                    )
                }
            } else if entry.request.method == .post {
                inspectKey(entry, request, &failedBodies)
            }
        }
        inspectJitter(retryGaps)
        inspectPolling()
        return ConductReport(
            findings: findings,
            exchanges: exchanges.count,
            full: reads.count { $0.status == 200 },
            notModified: reads.count { $0.status == 304 },
            clientErrors: answered.count { (400..<500).contains($0.status) },
            serverErrors: answered.count { $0.status >= 500 },
            unanswered: exchanges.count - answered.count,
            bytesSent: sent,
            bytesSaved: saved,
            bytesSavedByCoding: savedByCoding
        )
    }

    private mutating func add(_ rule: ConductReport.Rule, _ entries: [Int], _ detail: String) {
        findings.append(.init(rule: rule, entries: entries, detail: detail))
    }

    private mutating func inspectRetries(
        _ entry: JournalEntry,
        _ request: String,
        _ refusals: inout [String: Refusal],
        _ gaps: inout [(number: Int, gap: Duration)]
    ) {
        if let refusal = refusals[request] {
            gaps.append((entry.number, entry.started - refusal.at))
            if entry.started < refusal.until {
                let early = refusal.until - entry.started
                add(.retriedTooSoon, [refusal.number, entry.number], "was sent \(early) before Retry-After had passed")
            }
        }
        let failed = entry.status == 0 || entry.status >= 500 || entry.status == 429 || !entry.isComplete
        guard failed else {
            refusals[request] = nil
            return
        }
        var wait = Duration.zero
        if let text = entry.replyField("retry-after") {
            wait = RetryAfter(parsing: text, now: entry.at)?.wait(from: entry.at) ?? .zero
        }
        refusals[request] = Refusal(number: entry.number, at: entry.ended, until: entry.ended + wait)
    }

    private mutating func inspectConcurrency(
        _ entry: JournalEntry,
        _ request: String,
        _ running: inout [String: [JournalEntry]]
    ) {
        let isRead = entry.request.method == .get
        let isLive = entry.status == 101 || entry.request.path.starts(with: "/v1/live".utf8)
        guard isRead, !isLive else { return }
        let others = running[request, default: []].filter { $0.ended > entry.started }
        if let other = others.first {
            add(
                .duplicateInFlight,
                [other.number, entry.number],
                "\(Secrets.masked(target: entry.request.targetText)) was already in flight"
            )
        }
        running[request] = others + [entry]
    }

    private mutating func inspectDownload(_ entry: JournalEntry, _ resource: String, _ earlier: Download?) {
        guard let earlier else { return }
        if let tag = entry.replyField("etag"), tag == earlier.tag,
            !(entry.request.fields.combined(.ifNoneMatch)?.contains(tag) ?? false)
        {
            add(
                .downloadedTwice,
                [entry.number],
                "\(Secrets.masked(target: entry.request.targetText)), \(entry.bodyBytes) bytes with ETag \(tag)"
            )
        }
        let forced = entry.request.fields.combined(.cacheControl)?.contains("no-cache") ?? false
        if !forced, entry.request.fields.range(of: "if-none-match") == nil, entry.at - earlier.at < earlier.freshFor {
            add(
                .refetchedFresh,
                [entry.number],
                "\(Secrets.masked(target: entry.request.targetText)) was fresh for \(earlier.freshFor)"
            )
        }
    }

    private mutating func inspectKey(
        _ entry: JournalEntry,
        _ request: String,
        _ failed: inout [String: (number: Int, key: String)]
    ) {
        guard entry.request.path.elementsEqual("/v1/transfers".utf8) else { return }
        guard let key = entry.request.fields[.idempotencyKey] else {
            return add(.keyMissing, [entry.number], "a transfer without an Idempotency-Key")
        }
        let body = request + String(decoding: entry.request.body, as: UTF8.self)
        if let earlier = failed[body], earlier.key != key {
            add(.keyChanged, [earlier.number, entry.number], "the same transfer was sent again with another key")
        }
        let hasFailed = entry.status == 0 || entry.status >= 500 || !entry.isComplete
        failed[body] = hasFailed ? (entry.number, key) : nil
    }

    private mutating func inspectJitter(_ gaps: [(number: Int, gap: Duration)]) {
        // Four retries at intervals equal to one percent are not a coincidence.
        let sorted = gaps.filter { $0.gap > .milliseconds(50) }.sorted { $0.gap < $1.gap }
        guard sorted.count >= 4 else { return }
        for start in 0...(sorted.count - 4) {
            let group = sorted[start..<(start + 4)]
            guard let low = group.first?.gap, let high = group.last?.gap, high - low <= low / 100 else { continue }
            add(.retriedWithoutJitter, group.map(\.number).sorted(), "each was sent \(low) after the failure")
            return
        }
    }

    private mutating func inspectPolling() {
        var lastFrame: [Int64: MonotonicTime] = [:]
        var polls: [Int64: [JournalEntry]] = [:]
        for entry in entries {
            if !entry.isExchange {
                lastFrame[entry.user] = entry.ended
            } else if entry.request.path.elementsEqual("/v1/changes".utf8), entry.status == 200,
                let frame = lastFrame[entry.user], entry.started - frame < .seconds(30)
            {
                polls[entry.user, default: []].append(entry)
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

    private static func freshness(_ entry: JournalEntry) -> Duration {
        guard let control = entry.replyField("cache-control"), !control.contains("no-cache") else { return .zero }
        for directive in control.split(separator: ",") {
            let parts = directive.split(separator: "=")
            if parts.count == 2, parts[0].drop(while: { $0 == " " }) == "max-age", let seconds = Int64(parts[1]) {
                return .seconds(seconds)
            }
        }
        return .zero
    }
}

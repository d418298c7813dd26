import LarderBackend
import LarderEngine
import LarderHTTP
import LarderTime

/// Analyses a journal for the behaviour of its clients.
struct ConductInspector {
    private struct Download {
        let tag: String
        let bytes: Int
        let requested: MonotonicTime
        /// On the server's clock.
        let ended: MonotonicTime
        let freshFor: Duration
        let mayBeStored: Bool
    }

    private struct Refusal {
        let number: Int
        let at: MonotonicTime
        let until: MonotonicTime
        /// When it was answered, on the server's clock.
        let ended: MonotonicTime
        /// Whether a person has reloaded since.
        var isReloaded = false
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
                        requested: entry.startedInWorld,
                        ended: entry.ended,
                        freshFor: Self.freshness(entry),
                        mayBeStored: !(entry.replyField("cache-control")?.contains("no-store") ?? false)
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
        // What was in flight when the refusal was sent is no retry.
        if let refusal = refusals[request], refusal.ended <= entry.started {
            if Self.isReload(entry), !refusal.isReloaded {
                refusals[request]?.isReloaded = true
            } else {
                gaps.append((entry.number, entry.startedInWorld - refusal.at))
                if entry.startedInWorld < refusal.until {
                    let early = refusal.until - entry.startedInWorld
                    add(
                        .retriedTooSoon,
                        [refusal.number, entry.number],
                        "\(Secrets.masked(target: entry.request.targetText)) was sent \(early) before Retry-After had passed"
                    )
                }
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
        let end = entry.endedInWorld
        var refusal = Refusal(number: entry.number, at: end, until: end + wait, ended: entry.ended)
        refusal.isReloaded = Self.isReload(entry) && refusals[request]?.isReloaded ?? false
        refusals[request] = refusal
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
        if let other = others.first(where: { !Self.isReload(entry) || Self.isReload($0) }) {
            add(
                .duplicateInFlight,
                [other.number, entry.number],
                "\(Secrets.masked(target: entry.request.targetText)) was already in flight"
            )
        }
        running[request] = others + [entry]
    }

    private mutating func inspectDownload(_ entry: JournalEntry, _ resource: String, _ earlier: Download?) {
        // A request that was sent before the first reply had arrived could not know of it.
        guard let earlier, earlier.mayBeStored, earlier.ended <= entry.started else { return }
        if let tag = entry.replyField("etag"), tag == earlier.tag,
            !(entry.request.fields.combined(.ifNoneMatch)?.contains(tag) ?? false)
        {
            add(
                .downloadedTwice,
                [entry.number],
                "\(Secrets.masked(target: entry.request.targetText)), \(entry.bodyBytes) bytes with ETag \(tag)"
            )
        }
        if !Self.isReload(entry), entry.request.fields.range(of: "if-none-match") == nil,
            entry.startedInWorld - earlier.requested < earlier.freshFor
        {
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

    private mutating func inspectPolling() {
        var lastFrame: [Int64: (connection: Int, at: MonotonicTime)] = [:]
        /// The reads that are needed, because frames before them were lost or late.
        var gaps: [Int64: Int] = [:]
        var polls: [Int64: [JournalEntry]] = [:]
        for entry in entries {
            if case .frame(let frame) = entry.kind {
                let isDisturbed = frame.injectedFault.map { $0 != "doubled" } ?? false
                if isDisturbed || lastFrame[entry.user]?.connection != entry.connection {
                    gaps[entry.user, default: 0] += 1
                }
                lastFrame[entry.user] = (entry.connection, entry.endedInWorld)
            } else if entry.request.path.elementsEqual("/v1/changes".utf8), entry.status == 200,
                let frame = lastFrame[entry.user], entry.startedInWorld - frame.at < .seconds(30)
            {
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

    /// Whether the request must reach the origin, as after a pull to refresh.
    private static func isReload(_ entry: JournalEntry) -> Bool {
        entry.request.fields.combined(.cacheControl)?.contains("no-cache") ?? false
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

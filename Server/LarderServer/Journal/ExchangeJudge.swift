import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Judges exchanges in the order of the journal, by the replies that each device had received before.
///
/// The conduct report and the verdicts of journal entries both use it. Devices are told apart by `JournalEntry.client`. An exchange
/// is compared with the last `capacity` exchanges only, so the state is bounded. A comparison with an older exchange is not made, and of
/// several rejections of a device only the last one is known: a verdict can be missing, but none is wrong. That a key has changed is taken
/// back if the first one comes again.
struct ExchangeJudge {
    /// What the journal says about an entry.
    struct Judgement {
        /// The verdicts, each with the number of the entry that it is about: an entry that ends first can be the later one.
        var verdicts: [(number: Int, verdict: ExchangeVerdict)] = []
        /// The entries whose verdict about their key was wrong, as is known now.
        var withdrawn: [Int] = []
        /// The time since the failure that this request repeats, or since the end of its `Retry-After`.
        var retryGap: Duration?
    }

    /// A reply that the client may have kept.
    private struct Download {
        let number: Int
        let tag: String?
        let bytes: Int
        let requested: MonotonicTime
        /// On the server's clock.
        let started: MonotonicTime
        let ended: MonotonicTime
        var freshFor: Duration
        /// Nil if it must not be stored.
        let selection: ReplySelection?
    }

    private struct Rejection {
        let number: Int
        let at: MonotonicTime
        /// When the wait ends that the server has asked for, and the entry in which it has asked.
        var wait: (end: MonotonicTime, number: Int)
        /// When it was answered, on the server's clock.
        let ended: MonotonicTime
        /// Whether a person has reloaded since.
        var isReloaded = false
        /// The operations that were rejected; empty if the rejection is about all requests for the target.
        var keys: Set<String>
        /// Whether the server wants no request now, also of another operation, until it has answered one with success.
        var isOverload: Bool

        /// Whether it is about a request with these operations.
        ///
        /// - Parameter lastSuccess: when the last request with a success was sent.
        func concerns(_ others: Set<String>, lastSuccess: MonotonicTime?) -> Bool {
            if keys.isEmpty || others.isEmpty || !keys.isDisjoint(with: others) { return true }
            return isOverload && lastSuccess.map { $0 < ended } ?? true
        }
    }

    /// A read that has ended, against which later entries are compared: its time in flight overlaps theirs.
    private struct Flight {
        let number: Int
        let started: MonotonicTime
        let ended: MonotonicTime
        let cost: (bytes: Int, time: Duration)
        let isReload: Bool
        /// Nil if its reply answers no other request.
        let selection: ReplySelection?
    }

    /// Equal requests in a row with the same answer.
    private struct Run {
        let answer: String
        /// The latest of them, at most `loopCountMinimum`.
        var latest: [(number: Int, started: MonotonicTime, startedInWorld: MonotonicTime)] = []
        /// The first request of a loop, and how many there are; nil while they are not frequent.
        var loop: (first: Int, count: Int)?
    }

    private let capacity: Int
    /// The two latest downloads of each resource: an overlapping one must not hide the one before.
    private var downloads: RecentTable<[Download]>
    private var rejections: RecentTable<Rejection>
    private var flights: RecentTable<[Flight]>
    private var keys: KeyJudge
    private var runs: RecentTable<Run>
    /// When the last request of each client that was a success was sent: it ends an overload for other operations.
    private var successes: RecentTable<MonotonicTime>
    /// When each client has last changed something or read the change feed, on the server's clock.
    private var writes: RecentTable<MonotonicTime>
    /// When each client was last sent a frame, on the world's clock.
    private var frames: RecentTable<MonotonicTime>
    private static let flightsMaximum = 64
    /// By so much less a client may wait than it was told: its own clock is as coarse.
    private static let earlyMaximum = Duration.milliseconds(1)
    /// So many equal requests within `loopTime`, on the world's clock and on the server's, are a loop: no person asks so often.
    private static let loopCountMinimum = 10
    private static let loopTime = Duration.seconds(1)

    /// - Parameter capacity: how many entries the journal keeps.
    init(capacity: Int) {
        self.capacity = capacity
        downloads = RecentTable(capacity: capacity)
        rejections = RecentTable(capacity: capacity)
        flights = RecentTable(capacity: capacity)
        keys = KeyJudge(capacity: capacity)
        runs = RecentTable(capacity: capacity)
        successes = RecentTable(capacity: capacity)
        writes = RecentTable(capacity: capacity)
        frames = RecentTable(capacity: capacity)
    }

    /// How many values the judge keeps, at most sixteen times the capacity.
    var memoryCount: Int {
        downloads.count + rejections.count + flights.count + keys.memoryCount + runs.count + successes.count
            + writes.count + frames.count
    }

    /// Judges the next entry of the journal. Frames have no verdict.
    mutating func judge(_ entry: JournalEntry) -> Judgement {
        var judgement = Judgement()
        let client = entry.client
        if case .frame(let frame) = entry.kind {
            if frame.direction == .sent { frames.set(entry.endedInWorld, for: client, by: entry.number) }
            return judgement
        }
        let resource = client + " " + entry.request.targetText
        // What another person on the device was told does not count against this one.
        let request = "\(client) \(entry.account) \(entry.request.method.rawValue) \(entry.request.targetText)"
        judgeRetry(entry, request, &judgement)
        if entry.status == 101 || entry.status == 304 || (200..<300).contains(entry.status) {
            let sent = max(entry.started, successes[client] ?? entry.started)
            successes.set(sent, for: client, by: entry.number)
        }
        if entry.request.method == .get {
            judgeFlights(entry, request, &judgement)
            judgeRead(entry, resource, &judgement)
            note(entry, resource)
            judgeLoop(entry, request, &judgement)
        } else if entry.request.method != .head, entry.request.method != .options {
            // What the client held may have changed by its own request (RFC 9111 section 4.4).
            if entry.status < 400 { expire(resource, by: entry.number) }
            if entry.request.method == .post { keys.judge(entry, request, &judgement) }
        }
        if entry.bringsNews { writes.set(entry.ended, for: client, by: entry.number) }
        if entry.isClientUnknown {
            // What follows from another entry may be about another client.
            for index in judgement.verdicts.indices where judgement.verdicts[index].verdict.other != nil {
                judgement.verdicts[index].verdict.text += " (device unknown)"
            }
        }
        for finding in entry.contractFindings {
            judgement.add(entry.number, finding, rule: .contractBroken)
        }
        return judgement
    }

    private mutating func judgeRetry(_ entry: JournalEntry, _ request: String, _ judgement: inout Judgement) {
        let isReload = entry.isReload
        let failed = entry.status == 0 || entry.status >= 500 || entry.status == 429 || !entry.isComplete
        let keys = Set(entry.idempotencyKeys)
        // Another operation with the same target is no retry: its key differs.
        let lastSuccess = successes[entry.client]
        let known = rejections[request].flatMap { $0.concerns(keys, lastSuccess: lastSuccess) ? $0 : nil }
        // What was in flight when the rejection was sent is no retry.
        if var rejection = known, rejection.ended <= entry.started {
            let gap = entry.startedInWorld - rejection.at
            if isReload, !rejection.isReloaded {
                rejection.isReloaded = true
                rejections.set(rejection, for: request, by: entry.number)
            } else {
                judgement.retryGap = entry.startedInWorld - rejection.wait.end
                let early = rejection.wait.end - entry.startedInWorld
                if early > Self.earlyMaximum {
                    let text = "retried \(ExchangeVerdict.seconds(early)) too soon"
                    // A reply that came nevertheless would have been necessary later.
                    let wasted = failed ? entry.cost : (0, .zero)
                    judgement.add(entry.number, text, rejection.wait.number, rule: .retriedTooSoon, wasted: wasted)
                } else {
                    let text = "retry of #\(rejection.number) after \(ExchangeVerdict.seconds(gap))"
                    judgement.add(entry.number, text, rejection.number)
                }
            }
        }
        guard failed else {
            if known != nil { rejections.set(nil, for: request, by: entry.number) }
            return
        }
        var wait = Duration.zero
        if let text = entry.replyField("retry-after") {
            // A client may compare a date with its own clock or with the reply's `Date`, which may be skewed.
            let sent = entry.replyField("date").flatMap { HTTPDate.parse($0, now: entry.at) } ?? entry.at
            wait = [entry.at, sent].compactMap { RetryAfter.wait(text, from: $0) }.min() ?? .zero
        }
        let end = entry.endedInWorld
        // 429 and 503 say that the server wants no request now; other replies are about the operation.
        var rejection = Rejection(
            number: entry.number,
            at: end,
            wait: (end + wait, entry.number),
            ended: entry.ended,
            keys: keys,
            isOverload: entry.status == 429 || entry.status == 503
        )
        // A failure that asks for no wait, or for a shorter one, does not end an earlier wait.
        if let known, known.wait.end > rejection.wait.end, known.wait.number > entry.number - capacity {
            rejection.wait = known.wait
            if known.keys.isEmpty { rejection.keys = [] }
            if known.isOverload { rejection.isOverload = true }
        }
        rejection.isReloaded = isReload && rejections[request]?.isReloaded ?? false
        rejections.set(rejection, for: request, by: entry.number)
    }

    private mutating func judgeFlights(_ entry: JournalEntry, _ request: String, _ judgement: inout Judgement) {
        func addDuplicate(_ flight: Flight, of other: Flight) {
            let text = "duplicate of #\(other.number), which was in flight"
            judgement.add(flight.number, text, other.number, rule: .duplicateInFlight, wasted: flight.cost)
        }
        let isLive = entry.status == 101 || ["/v1/live", "/v1/live/events", "/live"].contains(entry.request.pathText)
        guard !isLive else { return }
        let flight = Flight(
            number: entry.number,
            started: entry.started,
            ended: entry.ended,
            cost: entry.cost,
            isReload: entry.isReload,
            selection: ReplySelection(entry)
        )
        // Another language or part of the resource is something else.
        let wanted = [FieldName.accept, .acceptLanguage, .range].map { entry.request.fields.combined($0) ?? "" }
        let key = "\(request) \(wanted)"
        let recent = (flights[key] ?? []).filter { $0.number > entry.number - capacity }
        let known = recent.filter { $0.selection?.includes(entry) ?? true }
        // The later one of two that overlap is the duplicate. A reload may overtake what a cache may answer.
        for other in known where other.started > flight.started && (!other.isReload || flight.isReload) {
            addDuplicate(other, of: flight)
        }
        let earlier = known.first {
            $0.started <= flight.started && $0.ended > flight.started && (!flight.isReload || $0.isReload)
        }
        if let earlier { addDuplicate(flight, of: earlier) }
        flights.set((recent + [flight]).suffix(Self.flightsMaximum), for: key, by: entry.number)
    }

    private func judgeRead(_ entry: JournalEntry, _ resource: String, _ judgement: inout Judgement) {
        guard entry.status == 200 || entry.status == 304 else { return }
        // A request that was sent before the first reply had arrived could not know of it.
        let known = (downloads[resource] ?? []).filter {
            $0.ended <= entry.started && $0.selection != nil && $0.number > entry.number - capacity
        }
        // Of two replies that were in flight at once the client may have kept either: the one that has arrived last may be the answer to
        // the earlier request.
        let held = known.filter { $0.number == known.last?.number || $0.ended > known.last?.started ?? $0.ended }
        let control = entry.requestControl
        // A request may ask for more than a reply that is fresh.
        let asksForMore = control.maxAge != nil || control.minFresh != nil
        let lifetimes = held.map { $0.freshFor - (entry.startedInWorld - $0.requested) }
        let left: Duration = asksForMore ? .zero : lifetimes.min() ?? .zero
        // A cache may keep one reply for each resource only: one for another person or language has replaced those before.
        guard let earlier = known.last, held.allSatisfy({ $0.selection?.includes(entry) ?? false }),
            earlier.tag != nil || left > .zero || entry.status == 304
        else {
            if entry.status == 200, judgement.verdicts.isEmpty { judgement.add(entry.number, "nothing was held") }
            return
        }
        let isReload = entry.isReload
        let sentTag = entry.request.fields.combined(.ifNoneMatch)
        if !isReload, left > .zero {
            // A conditional request is no finding: it costs little, and some clients validate at each start. Neither is one of a client
            // that may know of a change: what changes a list is elsewhere.
            let isConditional = sentTag != nil || entry.request.fields.range(of: "if-modified-since") != nil
            let isNeedless = entry.status == 200 && !isConditional && !hasNews(entry, since: earlier)
            let rule: ConductReport.Rule? = isNeedless ? .refetchedFresh : nil
            let text = "was fresh for \(ExchangeVerdict.seconds(left)) more"
            judgement.add(entry.number, text, earlier.number, rule: rule, wasted: entry.cost)
        }
        if entry.status == 304 {
            if judgement.verdicts.isEmpty {
                judgement.add(entry.number, "validated, and \(earlier.bytes) bytes saved", earlier.number)
            }
            judgement.verdicts[judgement.verdicts.count - 1].verdict.savedBytes = earlier.bytes
        } else if let tag = entry.replyField("etag"), held.allSatisfy({ $0.tag == tag }),
            !(sentTag?.contains(tag) ?? false)
        {
            let text = "304 possible: this client held \(tag)"
            judgement.add(entry.number, text, earlier.number, rule: .downloadedTwice, wasted: (entry.bodyBytes, .zero))
        } else if isReload {
            judgement.add(entry.number, "asked for by no-cache", earlier.number)
        } else if judgement.verdicts.isEmpty {
            // A server without conditional requests sends again what the client has validated.
            if entry.replyField("etag").map({ sentTag?.contains($0) ?? false }) ?? false {
                let text = "unchanged since #\(earlier.number), and the server does not answer If-None-Match"
                judgement.add(entry.number, text, earlier.number)
            } else {
                judgement.add(entry.number, "had changed since #\(earlier.number)", earlier.number)
            }
        }
    }

    /// Whether the client has changed something, or may have been told of a change, since it began to load what it holds.
    private func hasNews(_ entry: JournalEntry, since download: Download) -> Bool {
        writes[entry.client].map { $0 >= download.started } ?? false
            || frames[entry.client].map { $0 >= download.requested } ?? false
    }

    private mutating func note(_ entry: JournalEntry, _ resource: String) {
        guard entry.status == 200 || entry.status == 304, entry.isComplete, entry.trace?.ending == nil else { return }
        // Nobody keeps what cannot be used.
        if entry.trace?.decisions.contains(where: { $0.fault.action.effect.damagesContent }) ?? false { return }
        let known = downloads[resource] ?? []
        let confirmed = entry.status == 304 ? known.last : nil
        let mayBeStored = !entry.replyControl.noStore && !entry.requestControl.noStore
        let download = Download(
            number: entry.number,
            tag: entry.replyField("etag") ?? confirmed?.tag,
            bytes: confirmed?.bytes ?? entry.bodyBytes,
            requested: entry.startedInWorld,
            started: entry.started,
            ended: entry.ended,
            freshFor: entry.freshness,
            selection: mayBeStored ? ReplySelection(entry) : nil
        )
        downloads.set((known + [download]).suffix(2), for: resource, by: entry.number)
    }

    private mutating func judgeLoop(_ entry: JournalEntry, _ request: String, _ judgement: inout Judgement) {
        guard entry.status != 0, entry.status != 101, entry.isComplete, entry.trace?.ending == nil else { return }
        // Without a tag a reply is known by its length: the journal has no bodies of replies.
        let answer = entry.replyField("etag") ?? "\(entry.status) \(entry.bodyBytes)"
        let request = request + " " + (entry.request.fields.combined(.range) ?? "")
        var run = runs[request].flatMap { $0.answer == answer ? $0 : nil } ?? Run(answer: answer)
        let now = (number: entry.number, started: entry.started, startedInWorld: entry.startedInWorld)
        run.latest = run.latest.suffix(Self.loopCountMinimum - 1) + [now]
        if let first = run.latest.first {
            let time = max(now.started - first.started, now.startedInWorld - first.startedInWorld)
            if run.latest.count == Self.loopCountMinimum, time <= Self.loopTime {
                let (start, count) = run.loop ?? (first.number, Self.loopCountMinimum - 1)
                run.loop = (start, count + 1)
                let text = "asked \(count + 1) times since #\(start), each with the same answer"
                judgement.add(entry.number, text, start, rule: .repeatedInLoop, wasted: entry.cost)
            } else if run.loop != nil {
                run = Run(answer: answer, latest: [now])
            }
        }
        runs.set(run, for: request, by: entry.number)
    }

    private mutating func expire(_ resource: String, by entry: Int) {
        guard let known = downloads[resource] else { return }
        let expired = known.map { download in
            var download = download
            download.freshFor = .zero
            return download
        }
        downloads.set(expired, for: resource, by: entry)
    }
}

extension ExchangeJudge.Judgement {
    /// - Parameter wasted: what a perfect cache would not have spent.
    mutating func add(
        _ number: Int,
        _ text: String,
        _ other: Int? = nil,
        rule: ConductReport.Rule? = nil,
        wasted: (bytes: Int, time: Duration) = (0, .zero)
    ) {
        var verdict = ExchangeVerdict(text: text, other: other, rule: rule)
        (verdict.wastedBytes, verdict.wastedTime) = wasted
        verdicts.append((number, verdict))
    }
}

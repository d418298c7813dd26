import LarderServer
import LarderTime

extension ConductReport.Rule {
    /// Whether a rule can judge a run: some acts break it without a fault of the client.
    func holds(in simulation: Simulation) -> Bool {
        switch self {
        case .keyMissing, .keyChanged, .contractBroken: true
        // A client that has not received a reply, or that has lost its memory or its disk, cannot know of it.
        case .retriedTooSoon, .retriedWithoutJitter, .downloadedTwice, .refetchedFresh, .duplicateInFlight,
            .polledBesideLive, .repeatedInLoop:
            simulation.plan.settings.isCalm
        }
    }
}

/// What the journal says about findings that are no fault of a client.
struct ConductExcuses {
    private let records: [Int: JournalRecord]

    /// When people elsewhere have written something, which is not in the journal.
    private let writtenAt: [WallTime]

    /// When people have refreshed a list.
    private let refreshedAt: [WallTime]

    /// The longest time on a good link between the end of an exchange at the server and the arrival of a request that was sent before: a
    /// round trip, and two more if a connection was opened for it and needs a handshake.
    private let sendingTime: Duration

    init(_ records: [JournalRecord], writtenAt: [WallTime], refreshedAt: [WallTime], isSecure: Bool) {
        self.writtenAt = writtenAt
        self.refreshedAt = refreshedAt
        sendingTime = .milliseconds((isSecure ? 6 : 2) * Link.good.delay.upperBound)
        self.records = Dictionary(records.map { ($0.number, $0) }, uniquingKeysWith: { $1 })
    }

    /// Whether a finding has a reason that the report cannot know.
    func excuses(_ finding: ConductReport.Finding) -> Bool {
        let entries = finding.entries.sorted().compactMap { records[$0] }
        guard let first = entries.first, let last = entries.last, entries.count == 2 else { return false }
        switch finding.rule {
        case .downloadedTwice:
            return readsOtherPages(first, last) || isOvertaken(first, last) || isWrittenTo(first, last)
        case .refetchedFresh:
            // The change feed has said that the list has changed, and then it has no validator.
            return isPage(last) && first.replyField("etag") != last.replyField("etag") || readsOtherPages(first, last)
                || isOvertaken(first, last)
        case .duplicateInFlight:
            // A long poll that was given up may still be in flight at the server, and a person's second refresh must not be answered
            // with what was read before it.
            return last.target.hasPrefix("/v1/changes?") && last.target.contains("wait=")
                || isPage(last) && isReload(first) && isReload(last)
        case .retriedTooSoon:
            return isPage(last) && isReload(last) && isAskedFor(last) || isSentBeforeReply(first, last)
        default: return false
        }
    }

    /// Whether the later request may have been sent before the reply to the other had arrived, as two operations that are sent at once: the
    /// report knows only when the server has answered.
    private func isSentBeforeReply(_ first: JournalRecord, _ last: JournalRecord) -> Bool {
        last.at - last.duration - first.at < sendingTime
    }

    /// Whether a reload and a read that a cache may answer were in flight at once.
    private func isOvertaken(_ first: JournalRecord, _ last: JournalRecord) -> Bool {
        isPage(last) && isReload(first) != isReload(last) && isSentBeforeReply(first, last)
    }

    private func isPage(_ record: JournalRecord) -> Bool {
        record.target.hasPrefix("/v1/feed?") || record.target.contains("/messages?")
    }

    private func isReload(_ record: JournalRecord) -> Bool {
        record.requestField("Cache-Control")?.contains("no-cache") ?? false
    }

    /// Whether a person has refreshed within the second before the request.
    private func isAskedFor(_ record: JournalRecord) -> Bool {
        let start = record.at - record.duration
        return refreshedAt.contains { $0 <= start && start - $0 < .seconds(1) }
    }

    /// Whether the list was changed in between, or the client has heard of a change while the first request was in flight: it has no
    /// validator then, and the changes may have undone each other.
    private func isWrittenTo(_ first: JournalRecord, _ last: JournalRecord) -> Bool {
        let parts = last.target.hasPrefix("/v1/feed?") ? ["/v1/posts", "/v1/likes"] : ["/messages"]
        guard isPage(last) else { return false }
        let from = first.at - first.duration - sendingTime
        if writtenAt.contains(where: { $0 >= from && $0 <= last.at }) { return true }
        return records.values.contains { record in
            record.at >= from && record.number <= last.number && record.isExchange && record.method != "GET"
                && parts.contains(where: record.target.contains)
        }
    }

    /// Whether the device has read other pages of the same list in between: the stored list has the validator of its last reply.
    private func readsOtherPages(_ first: JournalRecord, _ last: JournalRecord) -> Bool {
        let list = last.target.prefix { $0 != "?" }
        return isPage(last)
            && records.values.contains { record in
                (first.number...last.number).contains(record.number) && record.isExchange
                    && record.target != last.target
                    && record.target.prefix { $0 != "?" } == list
                    && record.requestField("Larder-Device") == last.requestField("Larder-Device")
            }
    }
}

extension Act {
    /// What a calm run does not have.
    static let disturbing = ending.union(cutting).union(forgetting)

    /// The acts that end a process, or what it knows.
    private static let ending: Set<Act> = [
        .kill, .killSoon, .tearWrite, .closeApp, .losePower, .openApp, .signOut, .expireToken, .changeAndDie,
        .payAndLosePower, .expireAndDie, .clockBackBriefly, .clockBackSlightly, .damageStore, .changeAccount,
        .dieWhileSending, .interruptPhoto, .writeData, .editTogether,
    ]
    /// The acts after which a reply that the server has sent may not arrive.
    private static let cutting: Set<Act> = [
        .linkSlow, .linkLossy, .linkCut, .linkHalfOpen, .linkBlackHole, .linkChanged, .loseReplies, .resets, .silence,
        .truncates, .malformed, .background, .journey, .sourceOffline, .linkUneven, .postVanishes, .changeWhileReading,
        .payWhileReading, .openMuch,
    ]
    /// The acts after which a value that was received may not be used.
    private static let forgetting: Set<Act> = [
        .trimMemory, .diskFails, .diskFull, .clockForward, .clockBack, .feedFault, .wrongValidators, .lag, .dialect,
        .schemaDrift, .dateSkew, .clockDrift, .limited,
    ]
}

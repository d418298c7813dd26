import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// A report of client behaviour: needless, premature and duplicate requests.
public struct ConductReport: Sendable, Hashable, CustomStringConvertible {
    /// The checked rules.
    public enum Rule: String, Sendable, Hashable, CaseIterable {
        /// A request was repeated before the time in `Retry-After`. One reload (`Cache-Control: no-cache`) is allowed: a person asked.
        case retriedTooSoon
        /// At least four retries, and most of those after a similar time, had the same interval: no jitter.
        case retriedWithoutJitter
        /// A full reply was sent although the client had received the same ETag before and was allowed to store the reply.
        case downloadedTwice
        /// A resource was requested again while it was fresh, counted from the start of the request that returned it.
        case refetchedFresh
        /// A resource was requested again while the first request was in flight. A reload may overtake a request that a cache may answer.
        case duplicateInFlight
        /// A transfer had no idempotency key, or a POST that was sent again after its reply had been lost, and created
        /// something again.
        case keyMissing
        /// The same POST was sent with another key after a failure.
        case keyChanged
        /// The change feed was polled repeatedly beside an open live channel. A read after the channel was opened, and after a fault
        /// changed a frame, closes a gap and is not counted; neither is one for each frame that was sent before such a read ended.
        case polledBesideLive
        /// A read was repeated at least ten times within a second and had the same answer each time.
        case repeatedInLoop
        /// A request or a reply is not as the OpenAPI description of `--contract` says.
        case contractBroken
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
    public internal(set) var findings: [Finding] = []
    /// The number of earlier entries that the journal has not kept, and the report does not count.
    public internal(set) var dropped = 0
    /// The number of exchanges.
    public internal(set) var exchanges = 0
    /// The number of reads answered with a full reply.
    public internal(set) var full = 0
    /// The number of reads answered with 304.
    public internal(set) var notModified = 0
    /// The number of successful exchanges with other methods than GET, HEAD and OPTIONS.
    public internal(set) var writes = 0
    /// The number of exchanges answered with 4xx.
    public internal(set) var clientErrors = 0
    /// The number of exchanges answered with 5xx.
    public internal(set) var serverErrors = 0
    /// The number of exchanges without a complete reply.
    public internal(set) var unanswered = 0
    /// The number of exchanges that none of the other numbers counts, such as redirects and preflights.
    public var others: Int {
        exchanges - full - notModified - writes - clientErrors - serverErrors - unanswered
    }
    /// Bytes of heads and bodies that were sent.
    public internal(set) var bytesSent = 0
    /// Body bytes that 304 replies saved.
    public internal(set) var bytesSaved = 0
    /// Body bytes that compression saved.
    public internal(set) var bytesSavedByCoding = 0
    /// Bytes that a perfect cache would not have received.
    public internal(set) var bytesWasted = 0
    /// Time that a perfect cache would not have spent waiting, on the server's clock.
    public internal(set) var timeWasted = Duration.zero

    /// The report as a page of text.
    public var description: String {
        func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
            "\(number) \(number == 1 ? one : many ?? one + "s")"
        }
        let replies = count(full, "full reply", "full replies")
        var lines = [
            "\(count(exchanges, "exchange")): \(replies), \(notModified) not modified, \(count(writes, "write")), "
                + "\(count(clientErrors, "client error")), \(count(serverErrors, "server error")), "
                + "\(unanswered) not answered in full, \(count(others, "other"))",
            "\(bytesSent) bytes sent, \(bytesSaved) bytes saved by validators and \(bytesSavedByCoding) by compression",
            "\(bytesWasted) bytes and \(ExchangeVerdict.seconds(timeWasted)) were avoidable",
        ]
        if dropped > 0 {
            lines.append("\(count(dropped, "earlier entry", "earlier entries")) did not fit: use --journal N")
        }
        lines.append("")
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
            "dropped": dropped > 0 ? .integer(Int64(dropped)) : nil,
            "exchanges": .integer(Int64(exchanges)), "full": .integer(Int64(full)),
            "notModified": .integer(Int64(notModified)), "writes": .integer(Int64(writes)),
            "others": .integer(Int64(others)), "clientErrors": .integer(Int64(clientErrors)),
            "serverErrors": .integer(Int64(serverErrors)), "unanswered": .integer(Int64(unanswered)),
            "bytesSent": .integer(Int64(bytesSent)),
            "bytesSaved": .integer(Int64(bytesSaved)),
            "bytesSavedByCoding": .integer(Int64(bytesSavedByCoding)),
            "bytesWasted": .integer(Int64(bytesWasted)), "secondsWasted": .seconds(timeWasted),
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

import Larder
import LarderCoding

/// The requests of a run, each with the SDK's reason and the server's verdict on it.
struct Explanation {
    struct Line {
        var exchange: MonitoredTransport.Exchange
        /// What a perfect cache would have done; nil if the server's journal does not have the request.
        var verdicts: [JSONValue]?
    }

    let lines: [Line]
    let dropped: Int
    /// Why there are no verdicts; nil if the journal was read.
    let problem: String?

    /// Joins requests with the entries of a journal by their request IDs.
    ///
    /// - Parameters:
    ///   - entries: the `items` of the journal; nil if it could not be read.
    ///   - problem: why it could not.
    init(_ exchanges: [MonitoredTransport.Exchange], dropped: Int = 0, _ entries: [JSONValue]?, problem: String? = nil)
    {
        self.dropped = dropped
        self.problem = problem
        var found: [String: [JSONValue]] = [:]
        for entry in entries ?? [] {
            guard let id = entry["requestID"]?.string else { continue }
            found[id, default: []] += entry["verdicts"]?.array ?? []
        }
        lines = exchanges.map { Line(exchange: $0, verdicts: found[$0.id]) }
    }

    private static func json(_ duration: Duration) -> JSONValue {
        .number(Double(duration.nanosecondsSaturating) / 1e9)
    }

    /// Bytes that a perfect cache would not have received.
    var wastedBytes: Int { lines.flatMap { $0.verdicts ?? [] }.reduce(0) { $0 + $1.wastedBytes } }
    /// Time that a perfect cache would not have spent.
    var wastedTime: Duration { lines.flatMap { $0.verdicts ?? [] }.reduce(.zero) { $0 + $1.wastedTime } }

    /// The lines for a terminal.
    var text: [String] {
        guard !lines.isEmpty else { return ["No request was sent."] }
        var text: [String] = []
        for (number, line) in lines.enumerated() {
            let exchange = line.exchange
            let reply = exchange.status.map { "\($0)" } ?? "no reply (\(exchange.failure ?? "unknown"))"
            let size = SizeText.text(Int64(exchange.bytesReceived))
            text.append("\(number + 1)  \(exchange.request.method) \(exchange.target)")
            text.append("   reason   \(exchange.reason ?? "a request of the command itself")")
            text.append("   reply    \(reply), \(size) in \(TimeText.text(exchange.duration))")
            guard let verdicts = line.verdicts else {
                if problem == nil { text.append("   verdict  not in the server's journal") }
                continue
            }
            for verdict in verdicts {
                let waste = Self.waste(verdict.wastedBytes, verdict.wastedTime)
                let words = verdict["text"]?.string ?? ""
                text.append("   verdict  \(words)\(waste.isEmpty ? "" : " [wasted: \(waste)]")")
            }
            if verdicts.isEmpty { text.append("   verdict  nothing to object to") }
        }
        if dropped > 0 { text.append("\(dropped) more requests are not shown.") }
        let bytes = SizeText.text(Int64(lines.reduce(0) { $0 + $1.exchange.bytesReceived }))
        let waste = Self.waste(wastedBytes, wastedTime)
        let count = "\(lines.count) request\(lines.count == 1 ? "" : "s")"
        if let problem {
            text.append("\(count), \(bytes). No verdicts: \(problem)")
        } else {
            text.append("\(count), \(bytes); wasted: \(waste.isEmpty ? "nothing" : waste).")
        }
        return text
    }

    private static func waste(_ bytes: Int, _ time: Duration) -> String {
        var parts: [String] = []
        if bytes > 0 { parts.append(SizeText.text(Int64(bytes))) }
        if time > .zero { parts.append(TimeText.text(time)) }
        return parts.joined(separator: ", ")
    }

    /// The document of `--json`.
    var json: JSONValue {
        .members([
            ("requests", .array(lines.map(Self.json))), ("problem", problem.map { .string($0) }),
            ("wastedBytes", .integer(Int64(wastedBytes))), ("wastedSeconds", Self.json(wastedTime)),
        ])
    }

    private static func json(_ line: Line) -> JSONValue {
        let exchange = line.exchange
        return .members([
            ("requestID", .string(exchange.id)), ("method", .string(exchange.request.method.rawValue)),
            ("target", .string(exchange.target)), ("reason", exchange.reason.map { .string($0) }),
            ("status", exchange.status.map { .integer(Int64($0)) }), ("failure", exchange.failure.map { .string($0) }),
            ("durationSeconds", Self.json(exchange.duration)),
            ("bytesReceived", .integer(Int64(exchange.bytesReceived))),
            ("verdicts", line.verdicts.map { .array($0) }),
        ])
    }
}

/// What a verdict of the journal says that a perfect cache would have spared.
extension JSONValue {
    fileprivate var wastedBytes: Int { Int(clamping: self["wastedBytes"]?.integer ?? 0) }

    fileprivate var wastedTime: Duration {
        switch self["wastedSeconds"] {
        case .integer(let seconds): .seconds(min(max(0, seconds), 1 << 32))
        case .number(let seconds): .seconds(min(max(0, seconds), 4e9))
        default: .zero
        }
    }
}

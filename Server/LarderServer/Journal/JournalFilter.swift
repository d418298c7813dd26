import LarderCoding
import LarderHTTP
import LarderTime

/// A filter for journal entries.
public struct JournalFilter: Sendable, Hashable {
    /// The kind of an entry.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case exchange
        case frame
    }

    /// The condition on the request.
    public var match = FaultMatch()
    /// The kind of entry; nil for both.
    public var kind: Kind?
    /// A status, or a class such as `2xx`.
    public var status: String?
    /// The outcome: `complete`, `reset`, `closed`, `truncated`, `silent`, `stalled`, `abandoned`, `cut`.
    public var outcome: String?
    /// The name of a fault that was applied.
    public var fault: String?
    /// Entries after this number.
    public var after = 0

    /// Matches everything.
    public init() {}

    /// Entries of a kind whose request matches.
    init(_ match: FaultMatch, kind: Kind? = nil) { (self.match, self.kind) = (match, kind) }

    /// Exchanges with a method on a path pattern.
    public init(_ method: String? = nil, _ path: String? = nil, status: String? = nil) {
        match = FaultMatch(method, path)
        kind = .exchange
        self.status = status
    }

    static func read(_ reader: BodyReader) -> JournalFilter {
        var filter = JournalFilter()
        filter.match = FaultMatch.read(reader)
        filter.kind = reader.choice("kind", Kind.self)
        if let value = reader.value("status") {
            let text = value.string ?? value.integer.map { String($0) } ?? ""
            filter.status = text
            if text.utf8.count != 3 || Int(text) == nil && !(text.hasSuffix("xx") && text.first?.isNumber ?? false) {
                reader.fail("status", "must be a status or a class such as 4xx")
            }
        }
        filter.outcome = reader.string("outcome", length: 1...32)
        filter.fault = reader.string("fault", length: 1...64)
        filter.after = reader.integer("afterNumber", in: 0...Int(Int32.max)) ?? 0
        return filter
    }

    /// The filter in one line.
    var summary: String {
        var parts: [String] = []
        if let kind { parts.append(kind.rawValue) }
        parts.append(match.method ?? "any method")
        let query = match.query.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: "&")
        parts.append((match.path ?? "any path") + (query.isEmpty ? "" : "?\(query)"))
        if let host = match.host { parts.append("to \(host)") }
        if let peer = match.peer { parts.append("from \(peer)") }
        if let user = match.user { parts.append("by \(user)") }
        if let device = match.device { parts.append("from \(device)") }
        for (name, value) in match.headers.sorted(by: { $0.key < $1.key }) { parts.append("with \(name): \(value)") }
        for (name, value) in match.body.sorted(by: { $0.key < $1.key }) { parts.append("with body\(name) = \(value)") }
        if let status { parts.append("→ \(status)") }
        if let outcome { parts.append("(\(outcome))") }
        if let fault { parts.append("with fault \(fault)") }
        return parts.joined(separator: " ")
    }
}

/// A compiled filter for the journal of a world.
struct JournalMatcher {
    let filter: JournalFilter
    private let matcher: Matcher
    private var conditions: [MatchCondition<JournalEntry>] = []
    private let world: World

    init(_ filter: JournalFilter, in world: World) {
        (self.filter, self.world) = (filter, world)
        matcher = Matcher(filter.match)
        conditions.add("kind", filter.kind?.rawValue) {
            ($0.isExchange ? JournalFilter.Kind.exchange : .frame).rawValue
        }
        conditions.add("status", filter.status, orElse: "none") { [status = filter.status ?? ""] entry in
            let text = String(entry.status)
            let isOfClass = status.hasSuffix("xx") && text.first == status.first && text.count == 3
            return isOfClass ? status : entry.status == 0 ? nil : text
        }
        conditions.add("outcome", filter.outcome) { $0.outcome }
        conditions.add("fault", filter.fault, orElse: "none") { [fault = filter.fault ?? ""] entry in
            let applied = entry.faults.joined(separator: ", ")
            return entry.faults.contains(fault) ? fault : applied.isEmpty ? nil : applied
        }
    }

    func matches(_ entry: JournalEntry) -> Bool {
        entry.number > filter.after && conditions.allSatisfy { $0.fits(entry) }
            && matcher.mismatches(facts(entry)).isEmpty
    }

    private func facts(_ entry: JournalEntry) -> ExchangeFacts {
        let handle = Authenticator.handle(of: entry.user, in: world)
        return ExchangeFacts(entry.request, connection: entry.connection, viewer: entry.user, handle: handle)
    }

    /// What does not match.
    func mismatches(_ entry: JournalEntry) -> [Mismatch] {
        conditions.compactMap { $0.mismatch(entry) } + matcher.mismatches(facts(entry))
    }
}

import LarderCoding
import LarderHTTP
import LarderTime

/// Something that goes wrong on purpose: for whom, how often, at which stage, and what.
public struct Fault: Sendable, Hashable {
    /// Where in an exchange a fault strikes.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// The head has arrived; the body is not read.
        case beforeRead
        /// The request is there; nothing was done with it.
        case afterRead
        /// What was asked for is done and committed; nothing was said.
        case afterCommit
        /// At a byte of the reply's head.
        case head
        /// At a byte of the reply's body.
        case body
        /// Behind the reply's last byte.
        case end
    }

    /// Which of the matching exchanges of a device are struck.
    public struct Occurrence: Sendable, Hashable {
        /// How many are spared first.
        public var after = 0
        /// Every how manieth is struck.
        public var every = 1
        /// How many are struck at most; nil for no end.
        public var count: Int?
        /// How likely each is struck. At 0 nothing is, and nothing else changes.
        public var probability = 1.0
        /// From when on, counted from when the fault was set, in the world's time.
        public var from: Duration = .zero
        /// Until when; nil for ever.
        public var until: Duration?
        /// After how long `from` and `until` come round again.
        public var period: Duration?

        /// Every one, from now on.
        public init() {}

        /// The period in nanoseconds, where it has any: shorter ones are none.
        var roundNanoseconds: Int64? {
            period.map(\.nanosecondsSaturating).flatMap { $0 > 0 ? $0 : nil }
        }
    }

    /// Names the fault: in the journal, and to take it back.
    public var id: String
    /// For whom it is meant.
    public var match: FaultMatch
    /// Which of the matching exchanges it strikes.
    public var occurrence: Occurrence
    /// Where in an exchange it strikes.
    public var stage: Stage
    /// The byte at which `head` and `body` strike.
    public var at: Int
    /// What goes wrong.
    public var action: FaultAction
    /// How long the fault stands, in the world's time; nil until it is taken back.
    public var lifetime: Duration?

    /// - Parameters:
    ///   - id: its name; nil to be given one.
    ///   - stage: where it strikes; nil for where the action usually does.
    public init(
        id: String? = nil,
        _ action: FaultAction,
        when match: FaultMatch = FaultMatch(),
        occurrence: Occurrence = Occurrence(),
        stage: Stage? = nil,
        at: Int = 0,
        lifetime: Duration? = nil
    ) {
        self.id = id ?? ""
        self.match = match
        self.occurrence = occurrence
        self.stage = stage ?? action.usualStage
        self.at = at
        self.action = action
        self.lifetime = lifetime
    }

    /// Reads one fault; what is wrong with it is added to the reader's errors.
    static func read(_ reader: inout SettingsReader) -> Fault? {
        defer { reader.finish() }
        let id = reader.string("id", length: 1...64)
        var match = FaultMatch()
        var occurrence = Occurrence()
        if var child = reader.child("match") {
            match = FaultMatch.read(&child)
            occurrence = readOccurrence(&child)
            child.finish()
        }
        let stage = reader.choice("stage", Stage.self)
        let at = reader.integer("at", in: 0...1 << 30)
        let lifetime = reader.seconds("lifetimeSeconds")
        guard var action = reader.child("action") else {
            if reader.object["action"] == nil { reader.fail("action", "is missing") }
            return nil
        }
        guard let read = FaultAction.read(&action) else { return nil }
        let fault = Fault(
            id: id,
            read,
            when: match,
            occurrence: occurrence,
            stage: stage,
            at: at ?? 0,
            lifetime: lifetime
        )
        if let stage, !read.stages.contains(stage) {
            let names = read.stages.map(\.rawValue).joined(separator: ", ")
            reader.fail("stage", "must be one of \(names) for this action")
            return nil
        }
        if at != nil, fault.stage != .head, fault.stage != .body {
            reader.fail("at", "is a byte of the reply, and goes with the stages head and body only")
        }
        if fault.stage == .beforeRead, !match.body.isEmpty {
            reader.fail("match/body", "cannot be known before the request is read")
        }
        return fault
    }

    private static func readOccurrence(_ reader: inout SettingsReader) -> Occurrence {
        var occurrence = Occurrence()
        occurrence.after = reader.integer("after", in: 0...1_000_000_000) ?? 0
        occurrence.every = reader.integer("every", in: 1...1_000_000_000) ?? 1
        occurrence.count = reader.integer("count", in: 0...1_000_000_000)
        occurrence.probability = reader.number("probability", in: 0...1) ?? 1
        occurrence.from = reader.seconds("fromSeconds") ?? .zero
        occurrence.until = reader.seconds("untilSeconds")
        occurrence.period = reader.seconds("periodSeconds")
        return occurrence
    }

    /// Why the fault can never strike; nil where it can.
    var reasonItNeverMatches: String? {
        if occurrence.count == 0 { return "`count` is 0." }
        if occurrence.probability == 0 { return "`probability` is 0." }
        if let until = occurrence.until, until <= occurrence.from { return "The window ends before it begins." }
        if let period = occurrence.period, period <= occurrence.from {
            return "The window begins after its period ends."
        }
        if let lifetime, lifetime <= occurrence.from { return "The fault is gone before its window begins." }
        if let exchange = match.exchange, exchange > 1, occurrence.after > 0, match.connection != nil {
            return "One exchange on one connection happens once, and `after` spares it."
        }
        if let path = match.path, PathPattern(path) == nil {
            return "\(path) does not begin with /, or has * in a segment or ** before the end."
        }
        return nil
    }

    /// Which requests the fault strikes that the API does not serve; nil where it serves them, and where the fault replies
    /// itself. A request that is not served is struck like any other, and a path may be misspelled.
    var reasonItIsNotServed: String? {
        if case .respond = action { return nil }
        guard let path = match.path, PathPattern(path)?.isLiteral ?? false else { return nil }
        let method = match.method.map { Method($0) } ?? .get
        let bytes = Array(path.utf8)
        switch Router(Backend.routes).match(method, path: bytes[...]) {
        case .route: return nil
        case .otherMethods(let others):
            guard match.method != nil, method != .head, method != .options else { return nil }
            return "\(path) takes \(others.map { $0.rawValue }.joined(separator: ", ")), not \(method.rawValue)."
        case .none:
            return bytes.starts(with: "/v1/".utf8) ? "The API has nothing at \(path)." : nil
        }
    }

    var json: JSONValue {
        var when = match.json.object ?? JSONObject()
        let standard = Occurrence()
        if occurrence.after != standard.after { when["after"] = .integer(Int64(occurrence.after)) }
        if occurrence.every != standard.every { when["every"] = .integer(Int64(occurrence.every)) }
        if let count = occurrence.count { when["count"] = .integer(Int64(count)) }
        if occurrence.probability != 1 { when["probability"] = .number(occurrence.probability) }
        if occurrence.from != .zero { when["fromSeconds"] = .seconds(occurrence.from) }
        if let until = occurrence.until { when["untilSeconds"] = .seconds(until) }
        if let period = occurrence.period { when["periodSeconds"] = .seconds(period) }
        return .members([
            "id": .string(id), "match": when.members.isEmpty ? nil : .object(when), "stage": .string(stage.rawValue),
            "at": at > 0 ? .integer(Int64(at)) : nil, "action": action.json,
            "lifetimeSeconds": lifetime.map { .seconds($0) },
        ])
    }
}

import LarderCoding
import LarderHTTP
import LarderTime

/// A fault: which exchanges it applies to, how often, at which stage, and its action.
public struct Fault: Sendable, Hashable {
    /// The stage of an exchange at which a fault applies.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// The client has begun a TLS handshake. Only a connection has this stage, and no request.
        case handshake
        /// The head has arrived; the body is not read.
        case beforeRead
        /// At a byte of the request's body; the rest is not read.
        case requestBody
        /// The request has arrived and was not processed.
        case afterRead
        /// The request was processed and committed; nothing was sent.
        case afterCommit
        /// At a byte of the reply's head.
        case head
        /// At a byte of the reply's body.
        case body
        /// After the reply's last byte.
        case end

        /// Whether the fault has an offset.
        var hasOffset: Bool { [.handshake, .requestBody, .head, .body].contains(self) }

        /// Whether it is decided when the head of the request has arrived.
        var precedesBody: Bool { self == .beforeRead || self == .requestBody }
    }

    /// Which of a device's matching exchanges a fault applies to.
    public struct Occurrence: Sendable, Hashable {
        /// How many matching exchanges are skipped first.
        public var after = 0
        /// The fault applies to every n-th matching exchange.
        public var every = 1
        /// The maximum number of exchanges that the fault applies to; nil for no limit.
        public var count: Int?
        /// The probability that the fault applies. At 0 it never does, and other faults are unaffected.
        public var probability = 1.0
        /// The start of the window, relative to when the fault was set, in the world's time.
        public var from: Duration = .zero
        /// The end of the window; nil for none.
        public var until: Duration?
        /// The interval at which the window repeats; nil for never.
        public var period: Duration?

        /// Every matching exchange, from now on.
        public init() {}
    }

    /// The fault's name in the journal and for its removal.
    public var id: String
    /// Which exchanges match.
    public var match: FaultMatch
    /// Which of the matching exchanges it applies to.
    public var occurrence: Occurrence
    /// The stage at which it applies.
    public var stage: Stage
    /// The byte offset for the stages `handshake` (in what the server sends first), `requestBody`, `head` and `body`.
    public var at: Int
    /// What it does.
    public var action: FaultAction

    /// - Parameters:
    ///   - id: its name; nil to generate one.
    ///   - action: what happens.
    ///   - match: the exchanges it applies to.
    ///   - occurrence: how often, and with which probability.
    ///   - stage: the stage; nil for the action's default.
    ///   - at: the byte offset for the stages `handshake`, `requestBody`, `head` and `body`.
    public init(
        id: String? = nil,
        _ action: FaultAction,
        when match: FaultMatch = FaultMatch(),
        occurrence: Occurrence = Occurrence(),
        stage: Stage? = nil,
        at: Int = 0
    ) {
        self.id = id ?? ""
        self.match = match
        self.occurrence = occurrence
        self.stage = stage ?? action.kind.stages[0]
        self.at = at
        self.action = action
    }

    /// Reads one fault; errors are added to the reader's.
    static func read(_ reader: BodyReader) -> Fault? {
        let id = reader.string("id", length: 1...64)
        var match = FaultMatch()
        var occurrence = Occurrence()
        if let child = reader.child("match") { (match, occurrence) = (.read(child), readOccurrence(child)) }
        let stage = reader.choice("stage", Stage.self)
        let at = reader.integer("at", in: 0...1 << 30)
        guard let action = reader.child("action") else {
            if reader.object["action"] == nil { reader.fail("action", "is missing") }
            return nil
        }
        guard let read = FaultAction.read(action) else { return nil }
        let fault = Fault(id: id, read, when: match, occurrence: occurrence, stage: stage, at: at ?? 0)
        if let stage, !read.kind.stages.contains(stage) {
            let names = read.kind.stages.map(\.rawValue).joined(separator: ", ")
            reader.fail("stage", "must be one of \(names) for this action")
            return nil
        }
        if at != nil, !fault.stage.hasOffset {
            let names = Stage.allCases.filter(\.hasOffset).map(\.rawValue).joined(separator: ", ")
            reader.fail("at", "is a byte offset and requires one of the stages \(names)")
        }
        if fault.stage == .handshake, match.requiresRequest {
            reader.fail("match", "may have host and peer only: a handshake has no request")
        }
        if fault.stage.precedesBody, !match.body.isEmpty {
            reader.errors.add(reader.path("match") + "/body", "cannot be matched before the request body is read")
        }
        return fault
    }

    private static func readOccurrence(_ reader: BodyReader) -> Occurrence {
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

    /// Whether it does something to event streams and WebSockets, whose content has no known end.
    var appliesToChannels: Bool { stage == .body ? !action.effect.needsWholeBody : stage != .end }

    /// The place of its stage in an exchange. A connection that is dead has no stage before that.
    var place: Int { action.effect is StaleConnections ? -1 : Stage.allCases.firstIndex(of: stage) ?? 0 }

    /// Whether an exchange or a handshake that this fault applies to does not meet another one, which is set for the same stage or a
    /// later one.
    func overtakes(_ other: Fault) -> Bool {
        // One handshake has one certificate, and one page of the change feed has one form.
        if stage == .handshake || action.effect is ChangePage && other.stage == stage {
            return type(of: action.effect) == type(of: other.action.effect)
        }
        guard [.beforeRead, .requestBody, .afterRead, .afterCommit].contains(stage),
            let ending = action.effect.ending
        else { return false }
        // The reply that takes the other's place meets what changes replies.
        if ending.hasReply, [.head, .body, .end].contains(other.stage) || other.action.effect.delaysReply {
            return false
        }
        // What delays the exchange at the same stage comes first, and what has arrived of a body is delayed as a whole.
        let isBefore = other.stage == stage || stage == .requestBody && other.stage == .afterRead
        return !(isBefore && other.action.effect.delaysReply) || place < 0
    }

    /// Why the fault can never apply; nil if it can.
    var whyNeverMatched: String? {
        if occurrence.count == 0 { return "`count` is 0." }
        if occurrence.probability == 0 { return "`probability` is 0." }
        if let until = occurrence.until, until <= occurrence.from { return "The window ends before it begins." }
        if let period = occurrence.period, period <= occurrence.from {
            return "The window begins after its period ends."
        }
        if let exchange = match.exchange, exchange > 1, occurrence.after > 0, match.connection != nil {
            return "`exchange` and `connection` match one exchange, and `after` skips it."
        }
        if stage == .handshake, match.requiresRequest { return "A handshake has no request: only host and peer match." }
        if let path = match.path, PathPattern(path) == nil {
            return "\(path) does not begin with /, or has * in a segment or ** before the end."
        }
        return nil
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
        ])
    }
}

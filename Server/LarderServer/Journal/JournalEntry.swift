import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The faults and gates of an exchange. Safe from any thread: stages of the exchange change it, and its entry in the journal has a copy.
@dynamicMemberLookup
final class ExchangeTrace: Sendable {
    struct Values: Sendable {
        var decisions: [FaultDecision]
        /// When the request arrived, on the world's clock.
        let arrived: MonotonicTime
        /// When its last byte was handed on, on the world's clock. The entry is written later. Nil if the client left first.
        var ended: MonotonicTime?
        /// The injected part of the exchange's duration.
        var injected = Duration.zero
        /// How it ended; nil if it ended normally.
        var ending: String?
        /// The gates that held it.
        var gates: [String] = []
    }

    private let values: Mutex<Values>

    init(_ values: Values) { self.values = Mutex(values) }

    var copy: ExchangeTrace { ExchangeTrace(values.withLock { $0 }) }

    subscript<Value>(dynamicMember path: KeyPath<Values, Value>) -> Value { values.withLock { $0 }[keyPath: path] }

    func change(_ body: (inout Values) -> Void) { values.withLock { body(&$0) } }

    /// Adds the gate of a stage, unless the stage has added it.
    ///
    /// - Parameter count: the number of gates before the stage.
    func add(gate: String, after count: Int) { change { if $0.gates.count == count { $0.gates.append(gate) } } }
}

/// An exchange, or a frame of a live channel.
struct JournalEntry: Sendable {
    /// A frame of a live channel.
    struct Frame: Sendable {
        enum Direction: String, Sendable {
            case sent
            case received
        }

        let channel: String
        let direction: Direction
        /// The token of the change in the frame.
        let token: String?
        /// What a fault did to the frame: lost, delayed, doubled, reordered, held back or silenced; nil for nothing.
        let injectedFault: String?
    }

    enum Kind: Sendable {
        case exchange
        case frame(Frame)
    }

    /// The 1-based number of the entry in its world, which the journal assigns.
    var number = 0
    let kind: Kind
    /// The world's time at the end.
    let at: WallTime
    let request: Request
    let connection: Int
    var status = 0
    var head = ReplyHead.none
    var bodyBytes = 0
    let bytesSent: Int
    /// The bytes that a content coding has taken off the body.
    var bytesSavedByCoding = 0
    var requestBodyBytes = 0
    /// On the server's clock.
    let started: MonotonicTime
    let ended: MonotonicTime
    /// On the world's clock, on which waits and lifetimes pass.
    let startedInWorld: MonotonicTime
    let endedInWorld: MonotonicTime
    var isComplete = true
    /// The address of the client; empty for a frame.
    var peer = ""
    let user: Int64
    /// The commit that the exchange made; 0 for none.
    var commit: Int64 = 0
    var trace: ExchangeTrace?
    /// What the contract says about the exchange, a sentence each.
    var contractFindings: [String] = []

    /// The bytes that count towards the bound of the journal.
    var byteCount: Int { request.head.count + request.body.count + head.bytes.count }

    var isExchange: Bool { if case .exchange = kind { true } else { false } }

    /// The first value of a field of the reply.
    func replyField(_ name: String) -> String? { head[name] }

    var duration: Duration { ended - started }

    /// Names the client whose exchanges are compared with each other: its device, its user, or without both its credentials and its
    /// address. Another server's users are not known.
    var client: String {
        if let device = ExchangeFacts.device(of: request) { return "device " + device }
        if user != 0 { return "user \(user)" }
        guard let range = request.fields.range(of: "authorization") else { return "peer " + peer }
        return "peer \(peer) \(ContentHash.hash64(request.head.span.extracting(range)))"
    }

    /// Whether other clients may have the same name.
    var isClientUnknown: Bool {
        user == 0 && ExchangeFacts.device(of: request) == nil && request.fields.range(of: "authorization") == nil
    }

    /// The outcome in one word.
    var outcome: String {
        if let ending = trace?.ending { return ending }
        if status == 0 { return "abandoned" }
        return isComplete ? "complete" : "cut"
    }
}

extension JournalEntry {
    /// The entry as JSON, with secrets masked, also in queries.
    ///
    /// - Parameter verdicts: what a perfect cache would have done.
    func json(handle: String?, _ verdicts: [ExchangeVerdict] = []) -> JSONValue {
        var object = JSONObject()
        object["number"] = .integer(Int64(number))
        object["at"] = .string(at.rfc3339())
        object["connection"] = .integer(Int64(connection))
        if let handle { object["user"] = .string(handle) }
        object["device"] = .string(ExchangeFacts.device(of: request) ?? handle.map { "user:" + $0 } ?? "anonymous")
        object["method"] = .string(request.method.rawValue)
        object["path"] = .string(request.pathText)
        if let query = request.query {
            object["query"] = .string(Secrets.masked(query: String(decoding: query, as: UTF8.self)))
        }
        if case .frame(let frame) = kind {
            object["kind"] = .string("frame")
            object["channel"] = .string(frame.channel)
            object["direction"] = .string(frame.direction.rawValue)
            object["token"] = frame.token.map { .string($0) }
            object["bytes"] = .integer(Int64(bytesSent))
            object["injectedFault"] = frame.injectedFault.map { .string($0) }
            return .object(object)
        }
        object["kind"] = .string("exchange")
        object["exchange"] = .integer(Int64(request.exchangeIndex))
        // Another client's field may be of any length and content.
        if let id = request.fields[.requestID], id.utf8.count <= 128 { object["requestID"] = .string(id) }
        object["status"] = status > 0 ? .integer(Int64(status)) : .null
        object["outcome"] = .string(outcome)
        object["bytesSent"] = .integer(Int64(bytesSent))
        object["bodyBytes"] = .integer(Int64(bodyBytes))
        if bytesSavedByCoding > 0 { object["bytesSavedByCoding"] = .integer(Int64(bytesSavedByCoding)) }
        object["durationSeconds"] = .seconds(duration)
        object["injectedSeconds"] = trace.map { .seconds($0.injected) }
        if commit > 0 { object["commit"] = .integer(commit) }
        var validators = JSONObject()
        validators["etag"] = replyField("etag").map { .string($0) }
        validators["lastModified"] = replyField("last-modified").map { .string($0) }
        validators["ifNoneMatch"] = request.fields.combined(.ifNoneMatch).map { .string($0) }
        validators["ifMatch"] = request.fields.combined(.ifMatch).map { .string($0) }
        if !validators.members.isEmpty { object["validators"] = .object(validators) }
        object["requestFields"] = Self.fields(request.fields.all)
        object["replyFields"] = Self.fields(head.fields)
        object["requestBodyBytes"] = .integer(Int64(requestBodyBytes))
        if !request.body.isEmpty { object["requestBody"] = Secrets.masked(body: request.body) }
        if let trace, !trace.decisions.isEmpty { object["faults"] = .array(trace.decisions.map(\.json)) }
        if !verdicts.isEmpty { object["verdicts"] = .array(verdicts.map(\.json)) }
        if let trace, !trace.gates.isEmpty { object["gates"] = .array(trace.gates.map { .string($0) }) }
        return .object(object)
    }

    private static func fields(_ fields: [(name: String, value: String)]) -> JSONValue {
        .array(
            fields.map {
                .members(["name": .string($0.name), "value": .string(Secrets.masked(field: $0.name, $0.value))])
            }
        )
    }

    /// The scheme of its URL, with the separator.
    var scheme: String { request.isSecure ? "https://" : "http://" }

    /// The exchange as a curl command, with secrets masked.
    ///
    /// - Parameter base: the host and port, and the path of the world.
    func curl(base: String) -> String {
        var parts = ["curl -i"]
        if request.method != .get { parts.append("-X \(request.method.rawValue)") }
        for field in request.fields.all {
            let name = field.name.lowercased()
            if ["host", "content-length", "connection", "accept-encoding"].contains(name) { continue }
            parts.append("-H " + Self.quoted("\(field.name): \(Secrets.masked(field: field.name, field.value))"))
        }
        // Bytes that are not text cannot be an argument.
        if !request.body.isEmpty, String(validating: request.body, as: UTF8.self) != nil {
            parts.append("--data-binary " + Self.quoted(Secrets.masked(text: request.body)))
        }
        parts.append(Self.quoted(scheme + base + Secrets.masked(target: request.targetText)))
        return parts.joined(separator: " ")
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}

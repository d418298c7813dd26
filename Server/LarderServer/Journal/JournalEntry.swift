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
        /// Its place in the recording; nil if it is not recorded.
        let arrival: Recording.Arrival?
        /// The whole reply that was sent, for the recording.
        var reply: Reply?
        /// When its last byte was handed on, on the world's clock. The entry is written later. Nil if the client left first.
        var ended: MonotonicTime?
        /// The injected part of the exchange's duration.
        var injected = Duration.zero
        /// How it ended; nil if it ended normally.
        var ending: String?
        /// Whether it was answered with a success that a fault has withheld.
        var hasLostSuccess = false
        /// The gates that held it.
        var gates: [String] = []
    }

    private let values: Mutex<Values>

    init(_ values: Values) { self.values = Mutex(values) }

    /// Without the reply, which is not of the journal.
    var copy: ExchangeTrace {
        var copy = values.withLock { $0 }
        copy.reply = nil
        return ExchangeTrace(copy)
    }

    subscript<Value>(dynamicMember path: KeyPath<Values, Value>) -> Value { values.withLock { $0 }[keyPath: path] }

    func change(_ body: (inout Values) -> Void) { values.withLock { body(&$0) } }

    /// Adds the gate of a stage, unless the stage has added it.
    ///
    /// - Parameter count: the number of gates before the stage.
    func add(gate: String, after count: Int) { change { if $0.gates.count == count { $0.gates.append(gate) } } }
}

/// When a live channel ended, on the clock of its world. Safe from any thread.
final class ChannelEnd: Sendable {
    private let time = Mutex<MonotonicTime?>(nil)

    /// Later calls have no effect.
    func note(_ now: MonotonicTime) { time.withLock { $0 = $0 ?? now } }

    func isBefore(_ other: MonotonicTime) -> Bool { time.withLock { $0 }.map { $0 < other } ?? false }
}

/// An exchange, or a frame of a live channel.
@dynamicMemberLookup
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
        let end: ChannelEnd
    }

    enum Kind: Sendable {
        case exchange
        case frame(Frame)
    }

    struct DroppedBody: Sendable {
        let hash: UInt64
        let idempotencyKeys: [String]
    }

    /// The 1-based number of the entry in its world, which the journal assigns.
    var number = 0
    let kind: Kind
    /// The world's time at the end.
    let at: WallTime
    /// What the engine has recorded: the request without the part of its path that names the world, and without a long body. A frame has the
    /// request that has opened its channel.
    let record: ExchangeRecord
    let connection: Int
    var requestBodyBytes = 0
    /// What is known of a request's body that is not stored.
    var droppedBody: DroppedBody?
    /// On the world's clock, on which waits and lifetimes pass.
    let startedInWorld: MonotonicTime
    let endedInWorld: MonotonicTime
    let user: Int64
    /// The commit that the exchange made; 0 for none.
    var commit: Int64 = 0
    var trace: ExchangeTrace?
    /// What the contract says about the exchange, a sentence each.
    var contractFindings: [String] = []
    /// What a perfect cache would have made of the exchange.
    var verdicts: [ExchangeVerdict] = []
    /// The time since the failure that this request repeats, or since the end of its `Retry-After`.
    var retryGap: Duration?

    subscript<Value>(dynamicMember path: KeyPath<ExchangeRecord, Value>) -> Value { record[keyPath: path] }

    var request: Request { record.request }

    /// 0 without a reply.
    var status: Int { record.status == .noReply ? 0 : record.status.code }

    /// The bytes that count towards the bound of the journal.
    var byteCount: Int { request.head.count + request.body.count + record.head.bytes.count }

    /// The names of the applied faults.
    var faults: [String] { trace?.decisions.map(\.fault.id) ?? [] }

    var isExchange: Bool { if case .exchange = kind { true } else { false } }

    /// The first value of a field of the reply.
    func replyField(_ name: String) -> String? { record.head[name] }

    var duration: Duration { record.ended - record.started }

    /// What it has cost the client, on the server's clock.
    var cost: (bytes: Int, time: Duration) { (record.bytesSent, duration) }

    /// Names the person: its user, or else its credentials, because another server's users are not known. Empty without both.
    var account: String {
        if user != 0 { return "user \(user)" }
        guard let range = request.fields.range(of: "authorization") else { return "" }
        return "\(ContentHash.hash64(request.head.span.extracting(range)))"
    }

    /// Names the client whose exchanges are compared with each other: its device, its user, or without both its credentials and its
    /// address.
    var client: String {
        if let device = ExchangeFacts.device(of: request) { return "device " + device }
        return user != 0 ? account : "peer \(request.peer.host) \(account)"
    }

    /// Whether other clients may have the same name.
    var isClientUnknown: Bool { account.isEmpty && ExchangeFacts.device(of: request) == nil }

    /// Whether a write was carried out whose client does not know it.
    var isSilentlyCarriedOut: Bool {
        guard outcome != "complete", !request.method.isSafe else { return false }
        return commit > 0 || trace?.hasLostSuccess ?? false || (200..<300).contains(status)
    }

    /// The outcome in one word.
    var outcome: String {
        if let ending = trace?.ending { return ending }
        if status == 0 { return "abandoned" }
        return record.isComplete ? "complete" : "cut"
    }
}

extension JournalEntry {
    /// Longer bodies are counted and not stored.
    private static let keptBodyBytesMaximum = 8 << 10

    /// An exchange that is over.
    init(_ record: consuming ExchangeRecord, of owner: WorldExchange) {
        let clock = owner.world.clock
        // A stage of the exchange may go on after its record.
        let trace = (owner.trace as? ExchangeTrace)?.copy
        let endedInWorld = clock.uptime(at: record.ended) ?? trace?.ended ?? clock.uptime
        // What goes directly to the backend is answered at once.
        let startedInWorld = clock.uptime(at: record.started) ?? trace?.arrived ?? endedInWorld
        // The exchange has the world, which has the journal.
        record.context = nil
        if owner.prefixLength > 0 { record.request = record.request.droppingPathPrefix(owner.prefixLength) }
        let bodyCount = record.request.body.count
        var dropped: DroppedBody?
        if bodyCount > Self.keptBodyBytesMaximum {
            dropped = DroppedBody(
                hash: ContentHash.hash64(record.request.body.span),
                idempotencyKeys: Self.idempotencyKeys(of: record.request)
            )
            record.request.body = []
        }
        self.init(
            kind: .exchange,
            at: clock.now,
            record: consume record,
            connection: owner.connection.index,
            requestBodyBytes: bodyCount,
            droppedBody: dropped,
            startedInWorld: startedInWorld,
            endedInWorld: endedInWorld,
            user: owner.viewer,
            commit: owner.commit,
            trace: trace,
            contractFindings: owner.contractFindings.withLock { $0 }
        )
    }

    /// A frame of a live channel that was opened by a request.
    init(_ frame: Frame, bytes: Int, opening: Request, user: Int64, in world: World) {
        let uptime = world.clock.uptime
        var record = ExchangeRecord(request: opening, started: uptime, context: nil)
        record.bytesSent = bytes
        self.init(
            kind: .frame(frame),
            at: world.clock.now,
            record: record,
            connection: world.control.connections.entry(of: opening.connection, now: uptime).index,
            startedInWorld: uptime,
            endedInWorld: uptime,
            user: user
        )
    }

    /// The entry as JSON, with secrets masked, also in queries.
    func json(handle: String?) -> JSONValue {
        func count(_ number: Int) -> JSONValue { .integer(Int64(number)) }
        func list(_ values: [JSONValue]?) -> JSONValue? { values.flatMap { $0.isEmpty ? nil : .array($0) } }
        let common: [(String, JSONValue?)] = [
            ("number", count(number)), ("at", .string(at.rfc3339())), ("connection", count(connection)),
            ("user", handle.map { .string($0) }),
            ("device", .string(ExchangeFacts.device(of: request) ?? handle.map { "user:" + $0 } ?? "anonymous")),
            ("method", .string(request.method.rawValue)), ("path", .string(request.pathText)),
            ("query", request.query.map { .string(Secrets.masked(query: String(decoding: $0, as: UTF8.self))) }),
        ]
        if case .frame(let frame) = kind {
            let own: [(String, JSONValue?)] = [
                ("kind", .string("frame")), ("channel", .string(frame.channel)),
                ("direction", .string(frame.direction.rawValue)), ("token", frame.token.map { .string($0) }),
                ("bytes", count(record.bytesSent)), ("injectedFault", frame.injectedFault.map { .string($0) }),
            ]
            return .members(common + own)
        }
        let validators = JSONValue.members([
            "etag": replyField("etag").map { .string($0) },
            "lastModified": replyField("last-modified").map { .string($0) },
            "ifNoneMatch": request.fields.combined(.ifNoneMatch).map { .string($0) },
            "ifMatch": request.fields.combined(.ifMatch).map { .string($0) },
        ])
        // Another client's field may be of any length and content.
        let requestID = request.fields[.requestID].flatMap { $0.utf8.count <= 128 ? JSONValue.string($0) : nil }
        let own: [(String, JSONValue?)] = [
            ("kind", .string("exchange")), ("exchange", count(request.exchangeIndex)), ("requestID", requestID),
            ("status", status > 0 ? count(status) : .null), ("outcome", .string(outcome)),
            ("bytesSent", count(record.bytesSent)), ("bodyBytes", count(record.bodyBytes)),
            ("bytesSavedByCoding", record.bytesSavedByCoding > 0 ? count(record.bytesSavedByCoding) : nil),
            ("durationSeconds", .seconds(duration)), ("injectedSeconds", trace.map { .seconds($0.injected) }),
            ("commit", commit > 0 ? .integer(commit) : nil),
            ("carriedOut", isSilentlyCarriedOut ? .bool(true) : nil),
            ("validators", validators == .object(JSONObject()) ? nil : validators),
            ("requestFields", Self.fields(request.fields.all)), ("replyFields", Self.fields(record.head.fields)),
            ("requestBodyBytes", count(requestBodyBytes)),
            ("requestBody", request.body.isEmpty ? nil : Secrets.masked(body: request.body)),
            ("faults", list(trace?.decisions.map(\.json))), ("verdicts", list(verdicts.map(\.json))),
            ("gates", list(trace?.gates.map { .string($0) })),
        ]
        return .members(common + own)
    }

    static func fields(_ fields: [(name: String, value: String)], areMasked: Bool = true) -> JSONValue {
        .array(
            fields.map { name, value in
                let shown = areMasked ? Secrets.masked(field: name, value) : value
                return .members(["name": .string(name), "value": .string(shown)])
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
        let hasText = !request.body.isEmpty && String(validating: request.body, as: UTF8.self) != nil
        if hasText { parts.append("--data-binary " + Self.quoted(Secrets.masked(text: request.body))) }
        parts.append(Self.quoted(scheme + base + Secrets.masked(target: request.targetText)))
        if requestBodyBytes > 0, !hasText { parts.append(" # without its body of \(requestBodyBytes) bytes") }
        return parts.joined(separator: " ")
    }

    private static func quoted(_ text: String) -> String {
        "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}

extension JournalEntry {
    /// The fields of the request with these names, each as one value.
    func requestFields(_ names: [FieldName]) -> Fields {
        var fields = Fields()
        for name in names { if let value = request.fields.combined(name) { fields.set(name, value) } }
        return fields
    }

    /// What the request asks of a cache.
    var requestControl: CacheControl { CacheControl(request: requestFields([.cacheControl, .pragma])) }

    /// What the reply allows a cache.
    var replyControl: CacheControl { CacheControl(parsing: record.head.combined("cache-control").map { [$0] } ?? []) }

    /// Whether the request must reach the origin, as after a pull to refresh.
    var isReload: Bool {
        let control = requestControl
        return control.noCache != .none || control.maxAge == 0
    }

    /// The idempotency keys of the operations that a write carries: that of its field, or those of the items of a batch.
    var idempotencyKeys: [String] { droppedBody?.idempotencyKeys ?? Self.idempotencyKeys(of: request) }

    /// Tells bodies apart; nil without one.
    var bodyHash: UInt64? {
        droppedBody?.hash ?? (request.body.isEmpty ? nil : ContentHash.hash64(request.body.span))
    }

    /// Whether its client may know now that lists and other resources have changed: it has written, or has read the change feed.
    var bringsNews: Bool {
        guard (200..<300).contains(status) else { return false }
        return !request.method.isSafe || request.readsChangeFeed
    }

    private static func idempotencyKeys(of request: Request) -> [String] {
        guard request.method != .get, request.method != .head else { return [] }
        if let key = request.fields.combined(.idempotencyKey) { return [key] }
        guard request.path.elementsEqual("/v1/likes".utf8) else { return [] }
        let body: JSONValue
        // Of a batch that is not JSON nothing is carried out.
        do { body = try JSONParser.parse(request.body) } catch { return [] }
        return body["items"]?.array?.compactMap { $0["idempotencyKey"]?.string } ?? []
    }

    /// How long the reply was fresh when it was sent, by its own statement (RFC 9111 section 4.2).
    var freshness: Duration {
        let control = replyControl
        guard control.noCache == .none, let lifetime = control.maxAge else { return .zero }
        let age = replyField("age").map { Age.seconds(in: [.age: $0]) } ?? 0
        return .seconds(max(0, lifetime - age))
    }
}

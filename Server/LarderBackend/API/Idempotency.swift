import LarderCoding
import LarderEngine
package import LarderHTTP
import LarderTime

/// Executes an operation at most once for each idempotency key (draft-ietf-httpapi-idempotency-key-header-07).
///
/// The key, a fingerprint of the request and the reply are stored in the transaction of the effect, for 24 hours, under the
/// caller, the route and the key. A rejection by the domain (insufficient funds) is a result and is replayed too; a malformed
/// request is not. The items of a batch have a key each, under the route of the batch.
package enum Idempotency {
    /// The result of an operation.
    enum Outcome {
        /// A new resource, at this path.
        case created(at: String, [UInt8])
        /// A resource that already existed.
        case existing([UInt8])
        /// The domain rejected the operation before it changed anything.
        case rejected(Problem)
        /// Another reply, with complete field lines.
        case reply(Int, fields: [UInt8], body: [UInt8])
    }

    static func run(
        _ call: Call,
        isKeyRequired: Bool,
        _ operation: (Store, inout Commit) throws -> Outcome
    ) throws(Problem) -> Answer {
        guard let field = call.request.fields[.idempotencyKey] else {
            guard !isKeyRequired else {
                throw ProblemType.idempotencyKeyMissing("\(route(call)) needs an Idempotency-Key.")
            }
            return answer(try call.write { try stored(try operation($0, &$1), fingerprint: []) })
        }
        let key = try parse(field)
        let (user, route) = (call.viewer, route(call))
        let inFlight = KeysInFlight.Key(user: user, route: route, key: key)
        guard call.conditions.holdsKey || call.world.keysInFlight.begin(inFlight) else { throw inProgress() }
        defer { if !call.conditions.holdsKey { call.world.keysInFlight.end(inFlight) } }
        let fingerprint = SHA256.hash(call.request.body)
        let (reply, isReplay) = try call.write { store, commit -> (StoredReply, Bool) in
            if let first = try first(key, fingerprint, for: call, in: store, now: commit.now) { return (first, true) }
            let reply = try stored(try operation(store, &commit), fingerprint: fingerprint)
            try store.idempotency.store(reply, user: user, route: route, key: key, now: commit.now)
            return (reply, false)
        }
        return answer(reply, isReplay: isReplay)
    }

    /// Executes one item of a batch at most once for its key, in the running transaction.
    ///
    /// - Parameters:
    ///   - key: nil: the item is carried out.
    ///   - fingerprint: what a repetition must have in common with the first item.
    ///   - operation: returns the status of the item and its JSON, which are stored under the key.
    /// - Throws: `idempotency-key-reused`, which is the result of the item and not of the batch.
    static func run(
        _ key: String?,
        fingerprint: [UInt8],
        for call: Call,
        in store: Store,
        _ commit: inout Commit,
        _ operation: (Store, inout Commit) throws -> (status: Int, json: [UInt8])
    ) throws -> (status: Int, json: [UInt8]) {
        guard let key else { return try operation(store, &commit) }
        if let first = try first(key, fingerprint, for: call, in: store, now: commit.now) {
            return (first.status, first.body)
        }
        let (status, json) = try operation(store, &commit)
        let reply = StoredReply(fingerprint: fingerprint, status: status, fields: [], body: json)
        try store.idempotency.store(reply, user: call.viewer, route: route(call), key: key, now: commit.now)
        return (status, json)
    }

    /// The reply to replay; nil if the operation has to be executed.
    private static func first(
        _ key: String,
        _ fingerprint: [UInt8],
        for call: Call,
        in store: Store,
        now: WallTime
    ) throws -> StoredReply? {
        let dialect = call.world.hooks.dialect.idempotency
        let found = try store.idempotency.find(user: call.viewer, route: route(call), key: key, now: now)
        guard let found else { return nil }
        guard found.fingerprint == fingerprint else {
            var problem = ProblemType.idempotencyKeyReused("The key was used with another body.")
            // Stripe's first API uses 400.
            if dialect == .stripeV1 { problem.status = .badRequest }
            throw problem
        }
        // Stripe's second API replays successes only and runs a failed operation again.
        return dialect != .stripeV2 || found.status < 400 ? found : nil
    }

    package static func inProgress() -> Problem {
        ProblemType.idempotencyInProgress(
            "Another request with this key is in progress.",
            fields: [.retryAfter: "1"]
        )
    }

    private static func route(_ call: Call) -> String { "\(call.request.method) \(call.request.pathText)" }

    /// Accepts the key as a structured field string, and also unquoted, because many clients send it so.
    package static func parse(_ field: String) throws(Problem) -> String {
        let key: String
        if field.hasPrefix("\"") {
            guard let parsed = StructuredField.string(parsing: field) else {
                throw invalid("is not a well-formed quoted string (RFC 9651 §3.3.3)")
            }
            key = parsed
        } else {
            key = field
        }
        guard isKey(key) else { throw invalid("must have 1 to 255 printable ASCII characters") }
        return key
    }

    static let keyLength = 1...255

    /// Whether a text can be a key.
    static func isKey(_ text: String) -> Bool {
        keyLength.contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    private static func invalid(_ detail: String) -> Problem {
        ProblemType.invalidParameter(
            "Idempotency-Key \(detail).",
            errors: [Problem.FieldError(pointer: "Idempotency-Key", detail: detail)]
        )
    }

    /// The reply as it is stored: its status, `Content-Type`, `Location` and `ETag`, and its body.
    private static func stored(_ outcome: Outcome, fingerprint: [UInt8]) throws -> StoredReply {
        var fields: [UInt8] = []
        let (status, body): (Int, [UInt8])
        switch outcome {
        case .created(let path, let json):
            (status, body) = (201, json)
            fields.append("Content-Type: application/json\r\nLocation: ")
            fields.append(contentsOf: path.utf8)
            fields.append("\r\nETag: ")
            fields.append(contentsOf: EntityTag.strong(contentOf: json.span).description.utf8)
            fields.append("\r\n")
        case .existing(let json):
            (status, body) = (200, json)
            fields.append("Content-Type: application/json\r\nETag: ")
            fields.append(contentsOf: EntityTag.strong(contentOf: json.span).description.utf8)
            fields.append("\r\n")
        case .rejected(let problem):
            (status, body) = (problem.status.code, problem.encoded())
            fields.append("Content-Type: application/problem+json\r\n")
        case .reply(let code, let lines, let content): (status, fields, body) = (code, lines, content)
        }
        return StoredReply(fingerprint: fingerprint, status: status, fields: fields, body: body)
    }

    private static func answer(_ reply: StoredReply, isReplay: Bool = false) -> Answer {
        var head = ReplyHead(Status(code: reply.status))
        head.append("Content-Length", "\(reply.body.count)")
        head.append("Cache-Control", "no-store")
        head.append("Vary", "Authorization, Origin")
        if isReplay { head.append("Idempotent-Replayed", "true") }
        head.append(lines: reply.fields)
        return .reply(.response(Response(head, body: .bytes(reply.body))))
    }
}

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
    /// - Returns: nil if the operation replies with nothing, which uses up no key.
    static func run(
        _ call: Call,
        isKeyRequired: Bool,
        _ operation: (Store, inout Commit) throws -> Reply?
    ) throws(Problem) -> Reply? {
        guard let field = call.request.fields.combined(.idempotencyKey) else {
            guard !isKeyRequired else {
                throw ProblemType.idempotencyKeyMissing("\(route(call)) needs an Idempotency-Key.")
            }
            return try call.write { try operation($0, &$1) }
        }
        let (key, fingerprint) = (try parse(field), SHA256.hash(call.request.body))
        // In one transaction: of two requests at once the second one finds the reply of the first.
        return try call.write { store, commit in
            try once(key, fingerprint, for: call, in: store, &commit, operation)
        }
    }

    /// Executes an operation, such as one item of a batch, in the running transaction, and keeps its reply; or returns the reply of the
    /// first one with the key.
    ///
    /// - Parameter fingerprint: what a repetition must have in common with the first one.
    /// - Throws: `idempotency-key-reused`, which of an item of a batch is its result and not that of the batch.
    static func once(
        _ key: String,
        _ fingerprint: [UInt8],
        for call: Call,
        in store: Store,
        _ commit: inout Commit,
        _ operation: (Store, inout Commit) throws -> Reply?
    ) throws -> Reply? {
        let dialect = call.world.hooks.dialect.idempotency
        let (user, route, now) = (call.viewer, route(call), commit.now)
        if let found = try store.idempotency.find(user: user, route: route, key: key, now: now) {
            guard found.fingerprint == fingerprint else {
                var problem = ProblemType.idempotencyKeyReused("The key was used with another body.")
                // Stripe's first API uses 400.
                if dialect == .stripeV1 { problem.status = .badRequest }
                throw problem
            }
            // Stripe's second API replays successes only and runs a failed operation again.
            if dialect != .stripeV2 || found.reply.status.code < 400 {
                var first = found.reply
                first.head.append("Idempotent-Replayed", "true")
                return first
            }
        }
        guard let reply = try operation(store, &commit) else { return nil }
        try store.idempotency.store(reply, fingerprint, user: user, route: route, key: key, now: now)
        return reply
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
        ProblemType.invalidParameter("Idempotency-Key \(detail).", at: "Idempotency-Key", detail)
    }
}

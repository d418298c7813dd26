import LarderStorage
public import LarderTime

extension Outbox {
    /// An operation in the outbox.
    public struct Entry: Sendable, Identifiable {
        /// The state of an operation.
        public enum State: Int64, Sendable, Hashable {
            /// Waiting to be sent.
            case pending = 0
            /// In flight.
            case sending = 1
            /// Sent, with an unknown outcome: it is sent again under the same key.
            case inDoubt = 2
            /// Rejected by the server: it waits for `retry`, `edit` or `drop`.
            case rejected = 3

            /// The state of a stored row. An operation that was in flight when a process died may have arrived.
            init(stored: Int64) {
                let state = State(rawValue: stored) ?? .inDoubt
                self = state == .sending ? .inDoubt : state
            }
        }

        /// The row, with the state in this process and without its note.
        private var stored: DiskOutboxRow

        /// Which operation.
        public var id: OperationID { OperationID(stored.sequence) }
        /// The name under which the operation is registered.
        public var operation: String { stored.operation }
        /// The ordering scope.
        public var scope: String { stored.scope }
        public var coalescingKey: String? { stored.coalescingKey }
        /// The idempotency key, the same for every attempt.
        public var idempotencyKey: String { stored.idempotencyKey }
        /// The encoded input.
        public internal(set) var payload: [UInt8] {
            get { stored.payload }
            set { stored.payload = newValue }
        }
        public internal(set) var state: State {
            get { State(rawValue: stored.state) ?? .inDoubt }
            set { stored.state = newValue.rawValue }
        }
        /// The number of attempts.
        public internal(set) var attempts: Int {
            get { Int(stored.attempts) }
            set { stored.attempts = Int64(newValue) }
        }
        /// When it was enqueued.
        public var enqueuedAt: WallTime { WallTime(nanosecondsSinceEpoch: stored.enqueued) }
        /// The error of the last attempt, as far as it was in this process or the server has rejected the operation or turned it away.
        public internal(set) var error: LarderError?
        /// Why and when it was rejected; nil if it was not.
        public var rejection: Outbox.Rejection? { state == .rejected ? refusal : nil }
        /// Its rejection, or the last `Retry-After` of the server; nil if there was none.
        var refusal: Outbox.Rejection?

        /// Whether an earlier attempt may have been carried out.
        var isInDoubt: Bool
        /// The earliest time of the next attempt.
        var due = MonotonicTime(nanoseconds: .min)
        /// A lower bound of the next attempt that a network change does not lift: from `Retry-After`, or while a caller waits for the
        /// result.
        var heldUntil = MonotonicTime(nanoseconds: .min)
        /// How many batches with this operation failed as a whole, perhaps because of one operation.
        var failureCount = 0
        /// When this process began to send it; `never`: it has not.
        var sentAt = Stamp.never
        /// Whether its caller was told that the outcome is unknown.
        var isReportedInDoubt = false
        /// The number of accepting replies that could not be decoded.
        var unreadableReplies = 0

        init(_ row: DiskOutboxRow) {
            let state = State(stored: row.state)
            stored = row
            (stored.state, stored.note, stored.sealed) = (state.rawValue, nil, nil)
            isInDoubt = state == .inDoubt
            refusal = row.note.flatMap { Outbox.Rejection(encoded: $0, for: row.idempotencyKey) }
            error = refusal?.error
        }

        /// Whether another process has not changed the row since it was read.
        func hasSameRow(as other: Outbox.Entry) -> Bool {
            stored == other.stored && refusal?.attempt == other.refusal?.attempt
        }

        /// Whether the pending changes of both are the same.
        func isShownLike(_ other: Outbox.Entry) -> Bool {
            (state == .rejected) == (other.state == .rejected) && payload == other.payload
                && idempotencyKey == other.idempotencyKey
        }

        /// Takes over what is of this process and this moment.
        mutating func keepMoment(of known: Outbox.Entry) {
            (due, heldUntil) = (known.due, known.heldUntil)
            (failureCount, unreadableReplies) = (known.failureCount, known.unreadableReplies)
            isReportedInDoubt = known.isReportedInDoubt
            if state != .rejected, known.state != .rejected { error = known.error }
        }

        /// Delays what another process has stored: by the rest of a wait that the server has asked for, and an awaited operation until its caller's
        /// process should have sent it.
        mutating func leaveToOthers(_ operation: OutboxOperation?, at now: Moment) {
            var wait = refusal?.left(at: now.wall) ?? .zero
            if let operation, operation.isThrough, state == .pending {
                wait = max(wait, min(operation.timeout, operation.timeout - (now.wall - enqueuedAt)))
            }
            if wait > .zero { heldUntil = max(heldUntil, now.uptime + wait) }
        }

        /// The size by which the outbox is limited: the encoded input, the names and the keys.
        var bytes: Int {
            payload.count + operation.utf8.count + scope.utf8.count + idempotencyKey.utf8.count
                + (coalescingKey?.utf8.count ?? 0)
        }

        /// The operation as a row of the store.
        var row: DiskOutboxRow {
            var row = stored
            row.note = refusal?.encoded
            return row
        }
    }
}

extension Outbox.Entry {
    /// The input, decoded.
    ///
    /// - Parameters:
    ///   - type: the type of the input.
    ///   - codec: the operation's (`WriteBehind.codec`).
    /// - Throws: `.encoding` if another version of the application has stored it.
    public func input<Input: Codable & Sendable>(
        as type: Input.Type = Input.self,
        codec: PayloadCodec<Input> = .json
    ) throws(LarderError) -> Input {
        do { return try codec.decode(payload) } catch {
            throw LarderError(.encoding, "Operation \(id) cannot be decoded as a \(type): \(error)", cause: error)
        }
    }
}

extension Outbox {
    /// The state of the outbox.
    public struct Status: Sendable, Hashable {
        /// The number of operations that wait to be sent, including those in doubt.
        public var pending = 0
        /// The number of operations in flight.
        public var inFlight = 0
        /// The number of operations in doubt.
        public var inDoubt = 0
        /// The number of rejected operations that wait for a decision.
        public var rejected = 0
        /// The number of scopes that are blocked by a rejected operation.
        public var blockedScopes = 0
        /// When the first operation in the order of enqueuing that is not rejected was enqueued.
        public var oldest: WallTime?

        /// Whether there is nothing left to send.
        public var isDrained: Bool { pending == 0 && inFlight == 0 }
    }
}

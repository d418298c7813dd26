public import LarderTime

/// An operation in an outbox, as it can be looked at.
public struct OutboxEntry: Sendable, Identifiable {
    /// Where an operation stands.
    public enum State: Int64, Sendable, Hashable {
        /// It waits to be sent.
        case pending = 0
        /// It is on its way.
        case sending = 1
        /// It was on its way, and nobody knows what came of it: it is sent again under the same key.
        case inDoubt = 2
        /// The server has refused it: it waits for somebody to retry, edit or drop it.
        case refused = 3
    }

    /// Which operation.
    public internal(set) var id: OperationID
    /// What kind of operation: the name that it was registered under.
    public let operation: String
    /// Within which operations are in order.
    public let scope: String
    /// Operations with one key may become one.
    public let coalescingKey: String?
    /// The same for every attempt.
    public let idempotencyKey: String
    /// What is to be done, as JSON.
    public internal(set) var payload: [UInt8]
    /// Where it stands.
    public internal(set) var state: State
    /// How often it was sent.
    public internal(set) var attempts: Int
    /// When it was put in.
    public let enqueuedAt: WallTime
    /// What the last attempt failed with, in this process.
    public internal(set) var error: LarderError?

    /// Whether an earlier attempt may have been carried out.
    var isInDoubt: Bool
    /// When it may be sent again.
    var due = MonotonicTime(nanoseconds: .min)
    /// A newer operation is just being put in its place.
    var isReserved = false

    init(_ row: DiskOutboxRow) {
        id = OperationID(row.sequence)
        operation = row.operation
        scope = row.scope
        coalescingKey = row.coalescingKey
        idempotencyKey = row.idempotencyKey
        payload = row.payload
        let state = State(rawValue: row.state) ?? .inDoubt
        // What was on its way when a process died may have arrived.
        self.state = state == .sending ? .inDoubt : state
        attempts = Int(row.attempts)
        enqueuedAt = WallTime(nanosecondsSinceEpoch: row.enqueued)
        isInDoubt = self.state == .inDoubt
    }

    /// As it is stored.
    var row: DiskOutboxRow {
        var row = DiskOutboxRow(
            operation: operation,
            scope: scope,
            coalescingKey: coalescingKey,
            idempotencyKey: idempotencyKey,
            payload: payload
        )
        row.sequence = id.rawValue
        row.state = state.rawValue
        row.attempts = Int64(attempts)
        row.enqueued = enqueuedAt.nanosecondsSinceEpoch
        return row
    }
}

/// How an outbox stands.
public struct OutboxStatus: Sendable, Hashable {
    /// How many operations wait to be sent, those in doubt among them.
    public var pending = 0
    /// How many are on their way.
    public var inFlight = 0
    /// How many nobody knows the outcome of.
    public var inDoubt = 0
    /// How many were refused and wait for somebody to decide.
    public var refused = 0
    /// How many lanes wait behind a refused operation.
    public var heldLanes = 0
    /// When the oldest that is not refused was put in.
    public var oldest: WallTime?

    /// Whether there is nothing left to send.
    public var isDrained: Bool { pending == 0 && inFlight == 0 }
}

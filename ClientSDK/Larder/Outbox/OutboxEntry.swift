import Foundation
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
    public internal(set) var idempotencyKey: String
    /// What is to be done, as JSON.
    public internal(set) var payload: [UInt8]
    /// Where it stands.
    public internal(set) var state: State
    /// How often it was sent.
    public internal(set) var attempts: Int
    /// When it was put in.
    public let enqueuedAt: WallTime
    /// What the last attempt failed with: in this process, or what it was refused with in an earlier one.
    public internal(set) var error: LarderError?
    /// Why and when it was refused; nil for one that is not.
    public internal(set) var refusal: OutboxRefusal?

    /// Whether an earlier attempt may have been carried out.
    var isInDoubt: Bool
    /// When it may be sent again.
    var due = MonotonicTime(nanoseconds: .min)
    /// Before that it is not sent, whatever else happens: the server has asked for it, or somebody else waits for its end.
    var heldUntil = MonotonicTime(nanoseconds: .min)
    /// How often it was in a batch that failed as a whole, in a way that one of them may be to blame for.
    var suspicion = 0
    /// A newer operation is just being put in its place.
    var isReserved = false
    /// Whether its caller was told that its outcome is not known.
    var isReportedInDoubt = false
    /// How many replies that accepted it could not be read.
    var unreadableReplies = 0

    init(_ row: DiskOutboxRow, _ refusal: OutboxRefusal? = nil) {
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
        self.refusal = refusal
        error = refusal?.error
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

extension OutboxEntry {
    /// What is to be done, where it is stored as JSON: to be shown, and to be edited where it was refused (`Outbox.edit`).
    ///
    /// - Throws: `.encoding` where another version of the application has stored it.
    public func input<Input: Decodable>(as type: Input.Type = Input.self) throws(LarderError) -> Input {
        do { return try JSONDecoder().decode(Input.self, from: Data(payload)) } catch {
            throw LarderError(.encoding, "Operation \(id) cannot be read as a \(type): \(error)", cause: error)
        }
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

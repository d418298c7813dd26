import LarderEvents
import LarderStorage
import LarderTime

/// A type-erased registered operation.
struct OutboxOperation: Sendable {
    /// How operations share what may be in flight at once.
    enum Kind: Sendable, Hashable, CaseIterable {
        case usual
        /// A caller waits for its result (`WriteThrough`).
        case awaited
        /// It may take long, and is sent beside the others (`WriteBehind.isLong`).
        case long
    }

    let name: String
    let kind: Kind
    let batchMaximum: Int
    /// The batch size on a good network.
    let batchUsual: Int
    let rejectionBlocksScope: Bool
    let retry: RetryPolicy
    let timeout: Duration
    /// The changes that the server makes.
    let effects: @Sendable (_ payload: [UInt8], _ idempotencyKey: String) throws -> Outbox.LocalChanges
    let send: @Sendable ([Outbox.Entry]) async -> [OutboxResult]
    let rename: @Sendable ([UInt8], [String: String]) throws -> [UInt8]
    /// How a rejected operation is decided on; nil: it is no edit of an entity.
    let conflicts: Outbox.ConflictRule<[UInt8]>?

    /// Whether a caller waits for its result. It is not sent again if it was certainly not sent.
    var isThrough: Bool { kind == .awaited }

    /// The changes that are shown until the server has carried it out. An awaited write shows nothing before.
    func changes(_ payload: [UInt8], _ idempotencyKey: String) throws -> Outbox.LocalChanges {
        isThrough ? Outbox.LocalChanges(idempotencyKey: idempotencyKey) : try effects(payload, idempotencyKey)
    }

    /// The batch size at the current network level.
    func batchSize(_ behavior: NetworkBehavior) -> Int { min(batchMaximum, behavior.batch(batchUsual)) }

    init(any operation: any CacheConfiguration.Operation) {
        guard let definition = operation as? any OutboxDefinition else {
            preconditionFailure("\(type(of: operation)) is neither a WriteBehind nor a WriteThrough.")
        }
        self = definition.untyped
    }

    init<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>) {
        self.init(operation, operation.isLong ? .long : .usual)
    }

    init<Input, Receipt>(_ operation: WriteThrough<Input, Receipt>) {
        var same = WriteBehind<Input, Receipt>(operation.name, scope: operation.scope, changes: operation.changes) {
            attempts in
            var outcomes: [Outbox.Outcome<Receipt>] = []
            for attempt in attempts { outcomes.append(try await operation.send(attempt)) }
            return outcomes
        }
        same.retry = operation.retry
        same.timeout = operation.timeout
        same.acknowledge = operation.acknowledge
        self.init(same, .awaited)
    }

    private init<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>, _ kind: Kind) {
        name = operation.name
        self.kind = kind
        batchMaximum = max(1, operation.batchMaximum)
        batchUsual = min(batchMaximum, max(1, operation.batchUsual ?? batchMaximum))
        rejectionBlocksScope = operation.rejectionBlocksScope
        retry = operation.retry
        timeout = operation.timeout
        effects = { bytes, key in
            var changes = Outbox.LocalChanges(idempotencyKey: key)
            operation.changes(try operation.codec.decode(bytes), &changes)
            return changes
        }
        send = { entries in
            await Self.send(
                entries,
                by: operation.send,
                operation.codec,
                operation.acknowledge,
                serverIDs: operation.serverIDs
            )
        }
        rename = { bytes, names in
            // Usually no operation behind a creation depends on it, and to decode all of them would take long.
            if kind == .awaited || operation.codec.isJSON && !names.keys.contains(where: { Self.mayMention($0, bytes) })
            {
                return bytes
            }
            return try Self.encode(operation.replacingIDs(try operation.codec.decode(bytes), names), operation.codec)
        }
        conflicts = operation.conflicts?.encoded(by: operation.codec)
    }

    /// The number of accepting replies that cannot be decoded after which an operation ends. Before that it is sent
    /// again, because a reply may have been damaged on the way.
    private static let unreadableRepliesMaximum = 5

    private static func unreadable(_ error: LarderError) -> LarderError {
        LarderError(
            .unexpectedReply,
            "The server accepted the operation, and \(unreadableRepliesMaximum) replies could not be decoded. It is not "
                + "sent again: do not repeat it, and read the current value. (\(error.description))",
            cause: error,
            status: error.status
        ).marked(isFromAPI: true)
    }

    /// Whether JSON text may have a string. False only if it certainly has not: other characters than these may be escaped.
    private static func mayMention(_ name: String, _ json: [UInt8]) -> Bool {
        let isPlain = name.utf8.allSatisfy { $0 < 128 && $0 > 32 && !#""\/"#.utf8.contains($0) }
        return !isPlain || String(decoding: json, as: UTF8.self).contains(name)
    }

    static func encode<Input>(_ input: Input, _ codec: PayloadCodec<Input>) throws -> [UInt8] {
        do { return try codec.encode(input) } catch {
            throw LarderError(.encoding, "The operation could not be encoded: \(error)", cause: error)
        }
    }

    private static func send<Input: Codable & Sendable, Receipt: Sendable>(
        _ entries: [Outbox.Entry],
        by send: @Sendable ([Outbox.Attempt<Input>]) async throws -> [Outbox.Outcome<Receipt>],
        _ codec: PayloadCodec<Input>,
        _ acknowledge: @escaping @Sendable (Input, Receipt, inout CacheUpdate) -> Void,
        serverIDs: @Sendable (Input, Receipt) -> [String: String]
    ) async -> [OutboxResult] {
        let attempts = entries.map { entry -> Outbox.Attempt<Input>? in
            let input: Input
            do { input = try codec.decode(entry.payload) } catch {
                // Reported below, as the result of the operation.
                return nil
            }
            return Outbox.Attempt(
                id: entry.id,
                idempotencyKey: entry.idempotencyKey,
                input: input,
                number: entry.attempts,
                isInDoubt: entry.isInDoubt
            )
        }
        let readable = attempts.compactMap { $0 }
        var outcomes: [Outbox.Outcome<Receipt>]
        do {
            outcomes = readable.isEmpty ? [] : try await send(readable)
            if outcomes.count != readable.count {
                let text = "\(outcomes.count) outcomes came for \(readable.count) operations."
                outcomes = readable.map { _ in .retry(LarderError(.unexpectedReply, text)) }
            }
        } catch {
            outcomes = readable.map { _ in .failure(error) }
            // The batch was rejected as a whole, perhaps because of one operation: each is sent alone.
            if readable.count > 1, case .rejected? = outcomes.first {
                outcomes = []
                for attempt in readable {
                    do { outcomes.append(try await send([attempt]).first ?? .failure(error)) } catch {
                        outcomes.append(.failure(error))
                    }
                }
            }
        }
        var next = outcomes.makeIterator()
        return zip(entries, attempts).map { entry, attempt in
            guard let attempt, let outcome = next.next() else {
                // Another version of the application may be able to decode it. It is kept, unless it is an awaited write that no process
                // has begun to send.
                let error = LarderError(.encoding, "The stored operation cannot be read by this version.")
                return .rejected(error)
            }
            switch outcome {
            case .accepted(let receipt):
                let input = attempt.input
                return .accepted(
                    receipt,
                    acknowledge: { acknowledge(input, receipt, &$0) },
                    serverIDs: serverIDs(input, receipt)
                )
            case .rejected(let error): return .rejected(error)
            case .unsent(let error): return .unsent(error)
            case .retry(let error)
            where error.isUnreadableAcceptance && entry.unreadableReplies + 1 >= Self.unreadableRepliesMaximum:
                return .rejected(Self.unreadable(error))
            case .retry(let error): return .retry(error)
            }
        }
    }
}

/// The type-erased outcome of an attempt.
enum OutboxResult: Sendable {
    case accepted(
        any Sendable,
        acknowledge: @Sendable (inout CacheUpdate) -> Void,
        serverIDs: [String: String]
    )
    case rejected(LarderError)
    case unsent(LarderError)
    case retry(LarderError)

    /// The meaning of this result for an operation of which an earlier attempt may have been carried out: the only place that decides
    /// whether nothing was sent.
    ///
    /// | result of the attempt | meaning after such an attempt |
    /// | --- | --- |
    /// | accepted, rejected by the server | the same |
    /// | unsent | unknown |
    /// | an awaited write cannot be sent (it cannot be decoded, encoded or validated) | unknown |
    /// | a transient failure or an unknown outcome | unknown |
    func afterDoubt(isAwaited: Bool) -> OutboxResult {
        switch self {
        case .unsent(let error): .retry(error)
        case .rejected(let error) where isAwaited && error.isOfRequest: .retry(error)
        case .accepted, .rejected, .retry: self
        }
    }

    /// Invalidates what the acknowledgement of an accepted operation would change; nil if it was not accepted.
    var invalidations: CacheUpdate? {
        guard case .accepted(_, let acknowledge, _) = self else { return nil }
        var acknowledged = CacheUpdate()
        acknowledge(&acknowledged)
        return acknowledged.invalidatingItsKeys
    }

    /// The server IDs that later operations need.
    var names: [String: String] {
        if case .accepted(_, _, let names) = self { names } else { [:] }
    }

    /// How long the server has asked to wait before the next attempt.
    var wait: Duration {
        switch self {
        case .accepted, .rejected: .zero
        case .unsent(let error), .retry(let error): max(error.retryAfter ?? .zero, .zero)
        }
    }

    /// Whether the server failed while it processed the batch, perhaps because of one of its operations.
    var mayBeCausedByOneOperation: Bool {
        guard case .retry(let error) = self else { return false }
        return error.status == 500 || error.code == .unexpectedReply
    }
}

extension LarderError {
    /// Whether the attempt was not sent because of its own content: the server has decided nothing.
    fileprivate var isOfRequest: Bool {
        status == nil && [ErrorCode<LarderError>.encoding, .invalidArgument, .notValidated].contains(code)
    }
}

/// A `WriteBehind` or a `WriteThrough`.
private protocol OutboxDefinition {
    var untyped: OutboxOperation { get }
}

extension WriteBehind: OutboxDefinition {
    fileprivate var untyped: OutboxOperation { OutboxOperation(self) }
}

extension WriteThrough: OutboxDefinition {
    fileprivate var untyped: OutboxOperation { OutboxOperation(self) }
}

extension WriteThrough.Gated: OutboxDefinition {
    fileprivate var untyped: OutboxOperation { OutboxOperation(operation) }
}

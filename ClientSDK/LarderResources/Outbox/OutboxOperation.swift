import LarderEvents
import LarderStorage
import LarderTime

/// A type-erased registered operation.
struct OutboxOperation: Sendable {
    let name: String
    /// Whether a caller waits for its result (`WriteThrough`). It is not sent again if it was certainly not sent.
    let isThrough: Bool
    let batchMaximum: Int
    /// The batch size on a good network.
    let batchUsual: Int
    let rejectionBlocksScope: Bool
    let retry: RetryPolicy
    let timeout: Duration
    /// Whether it is sent beside the others (`WriteBehind.isLong`).
    let isLong: Bool
    /// The changes that are shown until the server has carried it out.
    let changes: @Sendable (_ payload: [UInt8], _ idempotencyKey: String) throws -> Outbox.LocalChanges
    /// The changes that the server makes: as `changes`, and also those of an awaited write, which are not shown.
    let effects: @Sendable (_ payload: [UInt8], _ idempotencyKey: String) throws -> Outbox.LocalChanges
    let send: @Sendable ([Outbox.Entry]) async -> [OutboxResult]
    let rename: @Sendable ([UInt8], [String: String]) throws -> [UInt8]
    /// How a rejected operation is decided on; nil: it is no edit of an entity.
    let conflicts: StoredConflictRule?

    /// The batch size at the current network level.
    func batchSize(_ behavior: NetworkBehavior) -> Int { min(batchMaximum, behavior.batch(batchUsual)) }

    init(any operation: any CacheConfiguration.Operation) {
        guard let definition = operation as? any OutboxDefinition else {
            preconditionFailure("\(type(of: operation)) is neither a WriteBehind nor a WriteThrough.")
        }
        self = definition.untyped
    }

    init<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>) { self.init(operation, isThrough: false) }

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
        self.init(same, isThrough: true)
    }

    private init<Input, Receipt>(_ operation: WriteBehind<Input, Receipt>, isThrough: Bool) {
        name = operation.name
        self.isThrough = isThrough
        batchMaximum = max(1, operation.batchMaximum)
        batchUsual = min(batchMaximum, max(1, operation.batchUsual ?? batchMaximum))
        rejectionBlocksScope = operation.rejectionBlocksScope
        retry = operation.retry
        timeout = operation.timeout
        isLong = operation.isLong
        effects = { bytes, key in
            var changes = Outbox.LocalChanges(idempotencyKey: key)
            operation.changes(try operation.codec.decode(bytes), &changes)
            return changes
        }
        // What is awaited shows nothing before it is carried out.
        if isThrough { changes = { _, key in Outbox.LocalChanges(idempotencyKey: key) } } else { changes = effects }
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
            if isThrough || operation.codec.isJSON && !names.keys.contains(where: { Self.mayMention($0, bytes) }) {
                return bytes
            }
            return try Self.encode(operation.replacingIDs(try operation.codec.decode(bytes), names), operation.codec)
        }
        conflicts = operation.conflicts.map { StoredConflictRule($0, operation.codec) }
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
            case .retry(let error, _)
            where error.isUnreadableAcceptance && entry.unreadableReplies + 1 >= Self.unreadableRepliesMaximum:
                return .rejected(Self.unreadable(error))
            case .retry(let error, let after): return .retry(error, after: after)
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
    case retry(LarderError, after: Duration?)

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
        case .unsent(let error): .retry(error, after: nil)
        case .rejected(let error) where isAwaited && error.isOfRequest: .retry(error, after: nil)
        case .accepted, .rejected, .retry: self
        }
    }

    /// The server IDs that later operations need.
    var names: [String: String] {
        if case .accepted(_, _, let names) = self { names } else { [:] }
    }

    /// How long the server has asked to wait before the next attempt.
    var wait: Duration {
        switch self {
        case .accepted, .rejected: .zero
        case .unsent(let error): max(error.retryAfter ?? .zero, .zero)
        case .retry(let error, let after): max(after ?? .zero, error.retryAfter ?? .zero, .zero)
        }
    }

    /// The `Retry-After` of a server that has turned the operation away, if a caller can wait for it.
    var shortPause: Duration? {
        guard case .retry(let error, _) = self, error.asksForShortPause else { return nil }
        return error.retryAfter
    }

    /// Whether the server failed while it processed the batch, perhaps because of one of its operations.
    var mayBeCausedByOneOperation: Bool {
        guard case .retry(let error, _) = self else { return false }
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

public import LarderTime

extension Outbox {
    /// What to do with two operations that have one coalescing key, while the older one has not been sent.
    public enum Coalesced<Input: Sendable>: Sendable {
        /// Both are sent.
        case keepBoth
        /// One operation is sent in place of both.
        case replace(Input)
        /// Neither is sent: the older one would have created what the newer one removes. For opposites, such as a like and an unlike,
        /// return `replace` with the newer one: the server may have had its state before.
        case removeBoth
    }
}

/// A change that is shown at once and sent later. It survives process death, takes effect on the server exactly once, and is rolled
/// back if the server rejects it.
///
/// ```swift
/// var star = WriteBehind<String, Void>(
///     "star",
///     scope: { $0 },
///     changes: { id, local in local.modify(Article.self, id) { $0.isStarred = true } },
///     send: { attempts in
///         for each in attempts {
///             try await client.source.send(.put, "/articles/\(each.input)/star", ["Idempotency-Key": each.idempotencyKey])
///         }
///         return attempts.map { _ in .accepted(()) }
///     }
/// )
/// star.acknowledge = { id, _, update in update.modify(Article.self, id) { $0.isStarred = true } }
/// client.cache.outbox.register(star)                          // at each start
/// try client.cache.enqueue("7", star)                         // on disk and shown when this returns
/// ```
public struct WriteBehind<Input: Codable & Sendable, Receipt: Sendable>: CacheConfiguration.Operation {
    /// The name of the operation in the store. Register the operation when the cache is opened (`CacheConfiguration.operations`):
    /// stored operations whose name is not registered are kept, and neither shown nor sent.
    public let name: String
    /// The ordering scope. Operations of one scope are sent one after another, in the order in which they were enqueued.
    public var scope: @Sendable (Input) -> String
    /// The coalescing key. Unsent operations of a scope with the same key may become one; nil: never, nor those before it with those after it,
    /// because it may change the same.
    public var coalescingKey: @Sendable (Input) -> String? = { _ in nil }
    /// Decides about two operations with one coalescing key, the older first. Called while the outbox is locked: it must be a pure
    /// function, and must not call the cache.
    public var coalesce: @Sendable (Input, Input) -> Outbox.Coalesced<Input> = { _, _ in .keepBoth }
    /// The maximum number of operations in one batch.
    public var batchMaximum = 1
    /// The batch size on a good network; on a poor network batches grow up to the maximum. Nil: the maximum.
    public var batchUsual: Int?
    /// Whether later operations in the same scope wait for a decision about a rejected one (`Outbox.retry`, `edit` or `drop`). Otherwise it is
    /// set aside, and they are sent.
    public var rejectionBlocksScope = false
    /// Back-off between attempts. The number of attempts is not limited: `attemptsMaximum` and `elapsedMaximum` have no effect.
    public var retry = RetryPolicy(base: .seconds(1), ceiling: .seconds(60))
    /// How long an attempt may take before its outcome counts as unknown.
    public var timeout: Duration = .seconds(60)
    /// Whether an attempt may take long: one such operation is sent at a time, beside `CacheConfiguration.concurrentSendsMaximum` others, also of
    /// other processes.
    package var isLong = false
    /// How inputs are encoded. `Outbox.Entry.input` reads JSON. A new codec must still decode inputs that are stored already.
    public var codec: PayloadCodec<Input> = .json
    /// The local changes that are shown at once.
    public var changes: @Sendable (Input, inout Outbox.LocalChanges) -> Void
    /// Sends a batch, and returns one outcome per operation in the same order.
    public var send: @Sendable ([Outbox.Attempt<Input>]) async throws -> [Outbox.Outcome<Receipt>]
    /// Stores the server's answer, before the operation is removed. It may be called more than once for one receipt. If it changes
    /// nothing, as by default, the stored entities keep the local changes, and they and the changed lists are invalidated. If the answer
    /// cannot be stored, the operation ends nevertheless, and the values that it would change are invalidated.
    /// After an attempt with an unknown outcome, the entities that it puts, or removes without a version, become stale: the reply may be
    /// the stored one to that attempt, and older than later changes. So does an entity without a version if another value of it was
    /// asked for after the operation was sent.
    public var acknowledge: @Sendable (Input, Receipt, inout CacheUpdate) -> Void = { _, _, _ in }
    /// Maps temporary client IDs to server IDs, so that queued operations can be rewritten.
    public var serverIDs: @Sendable (Input, Receipt) -> [String: String] = { _, _ in [:] }
    /// Replaces temporary client IDs in an input by server IDs: for operations that depend on an entity that did not exist on the
    /// server yet.
    public var replacingIDs: @Sendable (Input, [String: String]) -> Input = { input, _ in input }
    /// How a rejected edit is decided on (`Outbox.conflict`, `merge`, `keepMine`); nil: it can only be retried, edited or dropped as it is.
    public var conflicts: Outbox.ConflictRule<Input>?

    /// Creates an operation that is sent later.
    public init(
        _ name: String,
        scope: @escaping @Sendable (Input) -> String,
        changes: @escaping @Sendable (Input, inout Outbox.LocalChanges) -> Void,
        send: @escaping @Sendable ([Outbox.Attempt<Input>]) async throws -> [Outbox.Outcome<Receipt>]
    ) {
        self.name = name
        self.scope = scope
        self.changes = changes
        self.send = send
    }
}

/// A change that is shown only after the server has carried it out. It is stored before its first byte is sent. If its outcome is
/// unknown it is *in doubt*, and it is sent again under the same idempotency key on the next contact.
///
/// ```swift
/// let transferring = WriteThrough<Transfer, Void>("transfer", scope: { _ in "bank" }, send: { attempt in
///     try await client.source.send(.post, "/transfers", attempt.input, ["Idempotency-Key": attempt.idempotencyKey])
///     return .accepted(())
/// })
/// client.cache.outbox.register(transferring)                  // at each start: what was in doubt is then resolved
/// do {
///     try await client.cache.commit(Transfer(to: "acct_2", amount: 1_000), transferring)
/// } catch where error.code == .inDoubt {
///     print("not known yet; it will not be done twice")
/// }
/// ```
public struct WriteThrough<Input: Codable & Sendable, Receipt: Sendable>: CacheConfiguration.Operation {
    /// The name of the operation in the store. Register the operation when the cache is opened (`CacheConfiguration.operations`), so
    /// that operations in doubt are resolved after a restart.
    public let name: String
    /// The ordering scope. While one operation of a scope is in doubt, no other operation of the scope is accepted.
    public var scope: @Sendable (Input) -> String
    /// Back-off between attempts for an operation in doubt. The number of attempts is not limited.
    public var retry = RetryPolicy(base: .seconds(1), ceiling: .seconds(60))
    /// How long an attempt may take before its outcome counts as unknown.
    public var timeout: Duration = .seconds(60)
    /// The changes that the server makes. They are not shown; if the server turns out to have another state, these values are stale.
    package var changes: @Sendable (Input, inout Outbox.LocalChanges) -> Void = { _, _ in }
    /// Sends an operation, and returns its outcome.
    public var send: @Sendable (Outbox.Attempt<Input>) async throws -> Outbox.Outcome<Receipt>
    /// Stores the server's answer, before the operation is removed. It may be called more than once for one receipt. If the answer
    /// cannot be stored, the operation ends nevertheless, and the values that it would change are invalidated.
    /// After an attempt with an unknown outcome, the entities that it puts, or removes without a version, become stale: the reply may be
    /// the stored one to that attempt, and older than later changes.
    public var acknowledge: @Sendable (Input, Receipt, inout CacheUpdate) -> Void = { _, _, _ in }

    /// Creates an operation that is awaited.
    public init(
        _ name: String,
        scope: @escaping @Sendable (Input) -> String,
        send: @escaping @Sendable (Outbox.Attempt<Input>) async throws -> Outbox.Outcome<Receipt>
    ) {
        self.name = name
        self.scope = scope
        self.send = send
    }
}

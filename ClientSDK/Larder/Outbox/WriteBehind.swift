/// What becomes of two operations of one coalescing key, of which the older has not been sent yet.
public enum Coalesced<Input: Sendable>: Sendable {
    /// Both are sent.
    case keepBoth
    /// One is sent in their place.
    case replace(Input)
    /// They undo each other: neither is sent, if the stored value of the server says that the newer one changes nothing. Where that value
    /// is not known, has no version, is declared stale, or differs, the newer one is sent in place of both.
    case cancelOut
}

/// What happens to a lane when one of its operations is refused for good.
public enum LaneRule: String, Sendable, Hashable {
    /// The refused one is put aside, and those behind it are sent.
    case passOn
    /// Those behind it wait until somebody has decided about it: `Outbox.retry`, `edit` or `drop`.
    case hold
}

/// A change that is shown at once and sent later: it survives the process, reaches the server once in effect, and is undone
/// where the server refuses it. It cannot be awaited as if it were done.
public struct WriteBehind<Input: Codable & Sendable, Receipt: Sendable>: Sendable {
    /// What it is called in the store. Register it when the cache is opened (`CacheConfiguration.operations`): what was stored under a
    /// name that is not registered stays there, and is neither shown nor sent.
    public let name: String
    /// Operations of one scope are sent in the order in which they were put in, one after another.
    public var scope: @Sendable (Input) -> String
    /// Operations with one key may become one; nil: never.
    public var coalescingKey: @Sendable (Input) -> String? = { _ in nil }
    /// What becomes of two operations with one key, the older first, while that has not been sent. It may be asked more than once.
    public var coalesce: @Sendable (Input, Input) -> Coalesced<Input> = { _, _ in .keepBoth }
    /// How many are sent together at most.
    public var batchMaximum = 1
    /// How many are sent together on a good network; on a bad one more, up to the maximum. Nil: the maximum.
    public var batchUsual: Int?
    /// What happens behind one that is refused.
    public var whenRefused = LaneRule.passOn
    /// How long to wait between attempts. There is no last one.
    public var retry = RetryPolicy(base: .seconds(1), ceiling: .seconds(60))
    /// How long an attempt may take before nobody knows whether it was carried out.
    public var timeout: Duration = .seconds(60)
    /// How an operation is stored: as JSON, which `OutboxEntry.input` reads, or faster. What was stored otherwise before should still
    /// be read.
    public var codec: Codec<Input> = .json
    /// What is shown at once.
    public var changes: @Sendable (Input, inout LocalChanges) -> Void
    /// Sends operations, and says what came of each, in their order.
    public var send: @Sendable ([Attempt<Input>]) async throws -> [Outcome<Receipt>]
    /// Stores what the server has answered, in the transaction that removes the operation. It may be called more than once for one receipt.
    /// Where it cannot be stored the operation ends all the same, and what it would change is declared stale.
    public var acknowledge: @Sendable (Input, Receipt, inout Update) -> Void = { _, _, _ in }
    /// The names that the server has given to what had local ones.
    public var renames: @Sendable (Input, Receipt) -> [String: String] = { _, _ in [:] }
    /// The operation with local names replaced: for those that depend on something that was not created yet.
    public var renamed: @Sendable (Input, [String: String]) -> Input = { input, _ in input }

    /// A change that is sent later.
    public init(
        _ name: String,
        scope: @escaping @Sendable (Input) -> String,
        changes: @escaping @Sendable (Input, inout LocalChanges) -> Void,
        send: @escaping @Sendable ([Attempt<Input>]) async throws -> [Outcome<Receipt>]
    ) {
        self.name = name
        self.scope = scope
        self.changes = changes
        self.send = send
    }
}

/// A change that is done when the server has done it, and never shown before. It is stored before its first byte leaves: where
/// nobody knows what came of it, it is *in doubt*, and resolves itself under the same key on the next contact.
public struct WriteThrough<Input: Codable & Sendable, Receipt: Sendable>: Sendable {
    /// What it is called in the store. Register it when the cache is opened (`CacheConfiguration.operations`), so that one that is in
    /// doubt after a restart is resolved.
    public let name: String
    /// Operations of one scope are sent one after another. While one is in doubt, no other of its scope is taken.
    public var scope: @Sendable (Input) -> String
    /// How long to wait between attempts at one that is in doubt.
    public var retry = RetryPolicy(base: .seconds(1), ceiling: .seconds(60))
    /// How long an attempt may take before nobody knows whether it was carried out.
    public var timeout: Duration = .seconds(60)
    /// Sends an operation, and says what came of it.
    public var send: @Sendable (Attempt<Input>) async throws -> Outcome<Receipt>
    /// Stores what the server has answered, in the transaction that removes the operation. It may be called more than once for one receipt.
    /// Where it cannot be stored the operation ends all the same, and what it would change is declared stale.
    public var acknowledge: @Sendable (Input, Receipt, inout Update) -> Void = { _, _, _ in }

    /// A change that is awaited.
    public init(
        _ name: String,
        scope: @escaping @Sendable (Input) -> String,
        send: @escaping @Sendable (Attempt<Input>) async throws -> Outcome<Receipt>
    ) {
        self.name = name
        self.scope = scope
        self.send = send
    }
}

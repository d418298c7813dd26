import LarderHTTP
public import LarderModels

/// Money: the server's word for everything. Nothing is shown before it has happened, and nothing of it is on the disk but what
/// was promised to be sent.
public struct Bank: Sendable {
    /// What is to be transferred.
    public struct TransferOrder: Codable, Sendable, Hashable {
        /// From which account.
        public var fromAccountId: String
        /// To which account.
        public var toAccountId: String
        /// How much.
        public var amount: Money
        /// What for.
        public var note: String

        /// An order.
        public init(from: String, to: String, _ amount: Money, note: String = "") {
            fromAccountId = from
            toAccountId = to
            self.amount = amount
            self.note = note
        }
    }

    /// Why the bank refused, by the type of its problem document.
    public struct Refusal: RawRepresentable, Sendable, Hashable {
        /// The last part of the problem's type.
        public let rawValue: String

        /// A refusal by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There is not that much on the account.
        public static let insufficientFunds = Refusal(rawValue: "insufficient-funds")
        /// The account is closed.
        public static let accountClosed = Refusal(rawValue: "account-closed")
        /// The accounts have another currency than the amount.
        public static let currencyMismatch = Refusal(rawValue: "currency-mismatch")
        /// The idempotency key was used for something else.
        public static let keyReused = Refusal(rawValue: "idempotency-key-reused")
    }

    private let cache: LarderCache
    private let source: HTTPSource
    /// The operation that is in the outbox while it is unresolved: to read it (`OutboxEntry.input`).
    public let operation: WriteThrough<TransferOrder, Transfer>
    /// How recently a balance must have been confirmed before money leaves the account.
    public static let balanceBound: Duration = .seconds(30)

    init(_ cache: LarderCache, _ source: HTTPSource) {
        self.cache = cache
        self.source = source
        operation = Self.operation(source)
        cache.outbox.register(operation)
    }

    static let accountsKey = QueryKey("accounts")

    static func transactionsKey(_ account: String) -> QueryKey { QueryKey("transactions", ["account": account]) }

    /// The accounts of who is signed in, as a resource.
    public var accounts: Resource<EntityList<Account>> {
        let source = source
        var accounts = Resource<EntityList<Account>>.list(
            "accounts",
            of: Account.self,
            freshness: .critical,
            policy: .cacheFirst
        ) { context in
            try await source.page("/v1/accounts", [], context)
        }
        accounts.retention = .memory
        accounts.tags = [LarderClient.everything]
        return accounts
    }

    /// The newest transactions of an account, as a resource.
    public func transactions(_ account: String) -> Resource<EntityList<Transaction>> {
        let source = source
        var transactions = Resource<EntityList<Transaction>>.list(
            "transactions",
            ["account": account],
            of: Transaction.self,
            freshness: .critical,
            policy: .cacheFirst
        ) { context in
            try await source.page(
                "/v1/accounts/\(HTTPSource.escape(account))/transactions",
                [("limit", "50")],
                context
            )
        }
        transactions.retention = .memory
        transactions.tags = [LarderClient.everything]
        return transactions
    }

    /// Transfers money. Never shown before the server has done it.
    ///
    /// The balance is confirmed first, if it was not lately. The order and its key are stored before the first byte leaves: a reply
    /// that is lost, a timeout or the death of the process leave it in doubt, and it resolves itself under the same key.
    ///
    /// - Throws: `.refused` (`Bank.refusal(_:)` says why), `.notValidated`, `.offline` and `.storage` where nothing was sent, `.inDoubt`
    ///   where nobody knows yet, `.conflict` while an earlier one from that account is in doubt. Nothing once it is done.
    public func transfer(_ order: TransferOrder) async throws(LarderError) -> Transfer {
        guard order.amount.minorUnits > 0 else {
            throw LarderError(
                .invalidArgument,
                "An amount has to be more than nothing; \(order.amount.minorUnits) was given."
            )
        }
        _ = try await cache.requireValidated(accounts, within: Self.balanceBound)
        return try await cache.commit(order, operation)
    }

    /// Transfers whose outcome nobody knows yet. They resolve themselves.
    public var unresolved: [OutboxEntry] { cache.outbox.entries.filter { $0.operation == operation.name } }

    /// Why the bank refused; nil for what is no refusal.
    public static func refusal(_ error: LarderError) -> Refusal? {
        guard error.code == .refused, let type = error.problem, let name = type.split(separator: "/").last else {
            return nil
        }
        return Refusal(rawValue: String(name))
    }

    private static func operation(_ source: HTTPSource) -> WriteThrough<TransferOrder, Transfer> {
        var operation = WriteThrough<TransferOrder, Transfer>("transfer", scope: { "account/" + $0.fromAccountId }) {
            attempt in
            let reply = try await source.send(
                .post,
                "/v1/transfers",
                attempt.input,
                [.idempotencyKey: attempt.idempotencyKey],
                as: Transfer.self
            )
            return .accepted(reply.value)
        }
        operation.acknowledge = { order, _, update in
            // What is on the accounts now is the server's to say.
            update.invalidate(Account.self, order.fromAccountId)
            update.invalidate(Account.self, order.toAccountId)
            update.invalidate(accountsKey)
            update.invalidate(transactionsKey(order.fromAccountId))
        }
        return operation
    }
}

public import Larder
public import LarderModels

/// Account balances and transfers.
///
/// Pessimistic: results are shown only after the server has confirmed them. The last known balances and transactions are stored: after a
/// restart they are shown with their age (`Snapshot.validatedAt`), and as stale until the server confirms them.
public struct Bank: Sendable {
    /// A transfer to be made.
    public struct TransferOrder: Codable, Sendable, Hashable {
        /// The ID of the debited account.
        public var fromAccountID: String
        /// The ID of the credited account.
        public var toAccountID: String
        /// The amount, greater than zero, in the currency of both accounts.
        public var amount: Money
        /// The payment reference.
        public var note: String

        /// An order to transfer `amount` between two accounts, by ID.
        public init(from: String, to: String, _ amount: Money, note: String = "") {
            fromAccountID = from
            toAccountID = to
            self.amount = amount
            self.note = note
        }

        private enum CodingKeys: String, CodingKey {
            case amount, note
            case fromAccountID = "fromAccountId"
            case toAccountID = "toAccountId"
        }
    }

    /// Why the server has rejected a transfer: the last path segment of the problem type.
    public enum Rejection: String, Sendable {
        /// The balance is too low.
        case insufficientFunds = "insufficient-funds"
        /// The account is closed.
        case accountClosed = "account-closed"
        /// An account has another currency than the amount.
        case currencyMismatch = "currency-mismatch"
    }

    private let client: APIClient
    /// The operation of transfers, which needs validated balances.
    public let operation: WriteThrough<TransferOrder, Transfer>.Gated<EntityList<Account>>
    /// The maximum age of a validated balance at a transfer.
    public static let balanceBound: Duration = .seconds(30)

    init(_ client: APIClient) {
        self.client = client
        operation = Self.operation(client.source)
    }

    /// Fresh for 15 seconds. Older balances are shown as stale, with their age, while the server does not answer; what must be
    /// confirmed goes through `validatedAccounts`.
    private static let freshness = Freshness.Demand.timeToLive(.seconds(15))

    static let accountsKey = QueryKey("accounts")

    static func transactionsKey(_ account: String) -> QueryKey { QueryKey("transactions", ["account": account]) }

    /// The accounts of the signed-in user.
    public var accounts: Resource<EntityList<Account>> {
        let source = client.source
        var accounts = Resource<EntityList<Account>>.list(
            "accounts",
            of: Account.self,
            freshness: Self.freshness,
            policy: .cacheFirst
        ) { context in
            try await source.fetch("/v1/accounts", context: context, as: Page<Account>.self) {
                EntityList($0.value.items, nextCursor: $0.value.nextCursor)
            }
        }
        accounts.isCached = client.isCached("bank")
        accounts.tags = [LarderClient.everything]
        return accounts
    }

    /// One account, for a decision about money: confirmed by the server within 15 seconds, or the read fails.
    public func account(_ id: String) -> Resource<Account> {
        let source = client.source
        var account = Resource<Account>.entity(id, freshness: .critical) { context in
            try await source.fetch("/v1/accounts/\(HTTPSource.escape(id))", context: context)
        }
        account.isCached = client.isCached("bank")
        account.tags = [LarderClient.everything]
        return account
    }

    /// The 50 newest transactions of an account.
    public func transactions(_ account: String) -> Resource<EntityList<Transaction>> {
        let source = client.source
        var transactions = Resource<EntityList<Transaction>>.list(
            "transactions",
            ["account": account],
            of: Transaction.self,
            freshness: Self.freshness,
            policy: .cacheFirst
        ) { context in
            try await source.page(
                "/v1/accounts/\(HTTPSource.escape(account))/transactions",
                PageRequest(context, limit: 50),
                by: .demo
            )
        }
        transactions.isCached = client.isCached("bank")
        transactions.tags = [LarderClient.everything]
        return transactions
    }

    /// Returns balances that the server has confirmed within `balanceBound`, and asks the server if necessary.
    ///
    /// - Throws: `.notValidated`, with a text for the user, if it does not answer.
    public func validatedAccounts() async throws(LarderError) -> Validated<EntityList<Account>> {
        try await client.cache.requireValidated(accounts, within: Self.balanceBound)
    }

    /// Transfers money, and returns after the server has confirmed it.
    ///
    /// The order and its idempotency key are stored on disk, also against a power loss, before the request is sent. After a lost reply, a
    /// timeout or a crash the transfer is in doubt, and the outbox retries it with the same key until its outcome is known.
    ///
    /// - Parameters:
    ///   - order: accounts, amount and note.
    ///   - balances: from `validatedAccounts`. They must not be older than `balanceBound` now.
    /// - Throws: `.invalidArgument` for an amount that is not greater than zero; `.rejected` if the server has rejected it (see
    ///   `rejection(_:)`); `.notValidated` if `balances` have expired; `.offline`, `.outboxFull` and `.storage` if nothing was sent;
    ///   `.inDoubt` if the outcome is unknown; `.conflict` while an earlier transfer from the account is in doubt.
    public func transfer(
        _ order: TransferOrder,
        given balances: Validated<EntityList<Account>>
    ) async throws(LarderError) -> Transfer {
        guard order.amount.minorUnits > 0 else {
            throw LarderError(
                .invalidArgument,
                "The amount is \(order.amount.minorUnits) minor units. It must be greater than zero."
            )
        }
        return try await client.cache.commit(order, operation, given: balances)
    }

    /// Transfers whose outcome is unknown. The outbox sends them again under their keys until it is known.
    public var unresolved: [Outbox.Entry] { client.cache.outbox.entries(of: operation.name) }

    /// The reason of a `.rejected` error; nil for other errors.
    public static func rejection(_ error: LarderError) -> Rejection? {
        guard error.code == .rejected, let type = error.problem, let name = type.split(separator: "/").last else {
            return nil
        }
        return Rejection(rawValue: String(name))
    }

    static func operation(
        _ source: HTTPSource
    ) -> WriteThrough<TransferOrder, Transfer>.Gated<EntityList<Account>> {
        var operation = WriteThrough<TransferOrder, Transfer>("transfer", scope: { "account/" + $0.fromAccountID }) {
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
            // The new balances come from the server.
            update.invalidate(Account.self, order.fromAccountID)
            update.invalidate(Account.self, order.toAccountID)
            update.invalidate(accountsKey)
            update.invalidate(transactionsKey(order.fromAccountID))
            update.invalidate(transactionsKey(order.toAccountID))
        }
        return operation.requiring(EntityList<Account>.self)
    }
}

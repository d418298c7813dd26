import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Bank: accounts and transactions, visible to their owners only, and transfers between accounts.
enum BankEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/accounts", .required, accounts),
        Route(.get, "/v1/accounts/{id}", .required) { call throws(Problem) in try call.read(.account) },
        Route(.get, "/v1/accounts/{id}/transactions", .required, transactions),
        Route(.post, "/v1/transfers", .required, transfer),
        Route(.get, "/v1/transfers", .required, transfersByKey),
        Route(.get, "/v1/transfers/{id}", .required, readTransfer),
    ]

    // MARK: Reading

    private static func accounts(_ call: Call) throws(Problem) -> Reply? {
        try call.reply { store in
            let accounts = try store.entities.page(after: 0, of: .of(.account, call.viewer), limit: .max)
            return ListPage.representation(accounts.map(\.json), (nil, nil))
        }
    }

    private static func transactions(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.account)
        let start = try call.pageStart(.transactions, owner: row)
        let limit = try call.limit()
        return try call.reply { store in
            _ = try call.visible(EntityID(.account, row), in: store)
            let list = EntityList.of(.transaction, row)
            let items = try store.entities.page(start, of: list, limit: limit)
            let body = try ListPage.body(items, start, of: list, (.transactions, row), in: store)
            return Representation(body: body, cacheControl: CachePolicy.revalidate)
        }
    }

    // MARK: Transfers

    private static func transfer(_ call: Call) throws(Problem) -> Reply? {
        let reader = BodyReader(try call.jsonObject())
        reader.require("fromAccountId", "toAccountId", "amount")
        let source = reader.identifier("fromAccountId", .account)
        let target = reader.identifier("toAccountId", .account)
        let note = reader.string("note", length: 0...140) ?? ""
        var amount: Int64?
        var currency: String?
        if let amountReader = reader.child("amount") {
            amountReader.require("minorUnits", "currency")
            amount = amountReader.integer("minorUnits", in: 1...Int(amountMaximum)).map { Int64($0) }
            currency = amountReader.string("currency", length: 3...3)
        }
        if let source, source == target { reader.fail("toAccountId", "must differ from `fromAccountId`") }
        try reader.check()
        guard let source, let target, let amount, let currency else {
            preconditionFailure("check() throws when a required member is missing.")
        }
        return try Idempotency.run(call, isKeyRequired: true) { store, commit in
            guard var from = try store.entities.find(EntityID(.account, source)), from.list == call.viewer else {
                throw ProblemType.validationFailed(
                    "You have no account acct_\(source).",
                    at: "/fromAccountId",
                    "is not an account of yours"
                )
            }
            guard var to = try store.entities.find(EntityID(.account, target)) else {
                throw ProblemType.validationFailed(
                    "There is no account acct_\(target).",
                    at: "/toAccountId",
                    "is not an account"
                )
            }
            for (account, member) in [(from, "fromAccountId"), (to, "toAccountId")] where !account.isOpen {
                return ProblemType.accountClosed("Account \(account.id.text) is closed.", at: "/\(member)", "is closed")
                    .reply
            }
            guard from.currency == currency, to.currency == currency else {
                var errors: [Problem.FieldError] = []
                if from.currency != currency {
                    errors.append(Problem.FieldError(pointer: "/fromAccountId", detail: "is in \(from.currency)"))
                }
                if to.currency != currency {
                    errors.append(Problem.FieldError(pointer: "/toAccountId", detail: "is in another currency"))
                }
                return ProblemType.currencyMismatch("The amount is in \(currency).", errors: errors).reply
            }
            guard from.mayOverdraw || from.balance >= amount else {
                var problem = ProblemType.insufficientFunds("The balance of account acct_\(source) is insufficient.")
                problem.extensions["balance"] = .money(from.balance, from.currency)
                return problem.reply
            }
            let (row, transactions) = try store.ledger.post(nil, from: &from, to: &to, amount, note, commit.now)
            for account in [from, to] {
                try commit.save(account, in: store)
                for transaction in transactions where transaction.list == account.id.row {
                    try commit.add(transaction, to: store)
                }
            }
            return .written(try store.ledger.json(transfer: row), createdAt: "/v1/transfers/xfer_\(row)")
        }
    }

    /// Above any realistic sum, and far below the overflow of Int64 sums.
    static let amountMaximum: Int64 = 1_000_000_000_000

    private static func readTransfer(_ call: Call) throws(Problem) -> Reply? {
        try Negotiation.requireJSON(call.request)
        let row = try call.row(.transfer)
        let body = try call.read { store in
            guard try store.ledger.isParty(call.viewer, to: row) else {
                throw ProblemType.notFound("You have no transfer xfer_\(row).")
            }
            return try store.ledger.json(transfer: row)
        }
        return .json(.ok, body)
    }

    /// The transfer that was made under an idempotency key, for a client that lost the reply.
    private static func transfersByKey(_ call: Call) throws(Problem) -> Reply? {
        try Negotiation.requireJSON(call.request)
        guard let key = call.query.first("idempotencyKey") else {
            throw call.invalid("idempotencyKey", "is required: transfers are listed by account, as transactions")
        }
        let now = call.world.clock.now
        let body = try call.read { store in
            let found = try store.idempotency.find(user: call.viewer, route: "POST /v1/transfers", key: key, now: now)
            return ListPage.body(found?.reply.status == .created ? [found?.reply.bytes ?? []] : [])
        }
        return .json(.ok, body)
    }
}

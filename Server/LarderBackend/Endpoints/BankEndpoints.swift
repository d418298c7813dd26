import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Bank: accounts and transactions, visible to their owners only, and transfers between accounts.
enum BankEndpoints {
    static let routes: [Route] = [
        Route(.get, "/v1/accounts", .required, accounts),
        Route(.get, "/v1/accounts/{id}", .required, account),
        Route(.get, "/v1/accounts/{id}/transactions", .required, transactions),
        Route(.post, "/v1/transfers", .required, transfer),
        Route(.get, "/v1/transfers", .required, transfersByKey),
        Route(.get, "/v1/transfers/{id}", .required, readTransfer),
    ]

    // MARK: Reading

    private static func accounts(_ call: Call) throws(Problem) -> Reply? {
        try call.reply { store in
            ListPage.representation(try store.accounts.owned(by: call.viewer).map(\.json), (nil, nil))
        }
    }

    private static func account(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.account)
        return try call.reply { store in
            _ = try own(row, of: call.viewer, in: store)
            return try call.representation(of: .account, row, in: store)
        }
    }

    private static func transactions(_ call: Call) throws(Problem) -> Reply? {
        let row = try call.row(.account)
        let start = try call.pageStart(.transactions, owner: row)
        let limit = try call.limit()
        return try call.reply { store in
            _ = try own(row, of: call.viewer, in: store)
            let items = try store.ledger.page(start, account: row, limit: limit)
            let cursors = ListPage.cursors(
                start,
                items.map(\.row),
                extent: try store.ledger.extent(account: row),
                list: .transactions,
                owner: row
            )
            return ListPage.representation(items.map(\.json), cursors)
        }
    }

    /// The caller's own account. Another person's account is reported as not found.
    private static func own(_ row: Int64, of viewer: Int64, in store: Store) throws -> AccountRow {
        guard let account = try store.accounts.find(row), account.owner == viewer else {
            throw ProblemType.notFound("You have no account acct_\(row).")
        }
        return account
    }

    // MARK: Transfers

    private static func transfer(_ call: Call) throws(Problem) -> Reply? {
        var reader = BodyReader(try call.jsonObject())
        reader.require("fromAccountId", "toAccountId", "amount")
        let source = reader.identifier("fromAccountId", .account)
        let target = reader.identifier("toAccountId", .account)
        let note = reader.string("note", length: 0...140) ?? ""
        var amount: Int64?
        var currency: String?
        if var amountReader = reader.child("amount") {
            amountReader.require("minorUnits", "currency")
            amount = amountReader.integer("minorUnits", in: 1...Int(amountMaximum)).map { Int64($0) }
            currency = amountReader.string("currency", length: 3...3)
            amountReader.finish()
        }
        if let source, source == target { reader.fail("toAccountId", "must differ from `fromAccountId`") }
        try reader.check()
        guard let source, let target, let amount, let currency else {
            preconditionFailure("check() throws when a required member is missing.")
        }
        return try Idempotency.run(call, isKeyRequired: true) { store, commit in
            try transfer(
                amount,
                currency,
                from: source,
                to: target,
                note: note,
                by: call.viewer,
                in: store,
                &commit
            )
        }
    }

    /// Above any realistic sum, and far below the overflow of Int64 sums.
    static let amountMaximum: Int64 = 1_000_000_000_000

    private static func transfer(
        _ amount: Int64,
        _ currency: String,
        from source: Int64,
        to target: Int64,
        note: String,
        by viewer: Int64,
        in store: Store,
        _ commit: inout Commit
    ) throws -> Reply {
        guard let from = try store.accounts.find(source), from.owner == viewer else {
            throw ProblemType.validationFailed(
                "You have no account acct_\(source).",
                errors: [Problem.FieldError(pointer: "/fromAccountId", detail: "is not an account of yours")]
            )
        }
        guard let to = try store.accounts.find(target) else {
            throw ProblemType.validationFailed(
                "There is no account acct_\(target).",
                errors: [Problem.FieldError(pointer: "/toAccountId", detail: "is not an account")]
            )
        }
        for (account, member) in [(from, "fromAccountId"), (to, "toAccountId")] where !account.isOpen {
            return ProblemType.accountClosed(
                "Account acct_\(account.row) is closed.",
                errors: [Problem.FieldError(pointer: "/\(member)", detail: "is closed")]
            ).reply
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
        let row = try move(amount, from: from, to: to, note: note, in: store, &commit)
        guard let transfer = try store.ledger.transfer(row) else {
            preconditionFailure("A transfer must be readable in the transaction that wrote it.")
        }
        return .created(at: "/v1/transfers/xfer_\(row)", transfer.json)
    }

    /// Moves money in the running transaction: ledger, balances and change feed. Returns the transfer's row.
    static func move(
        _ amount: Int64,
        from source: AccountRow,
        to target: AccountRow,
        note: String,
        as row: Int64? = nil,
        in store: Store,
        _ commit: inout Commit
    ) throws -> Int64 {
        var accounts = (source, target)
        accounts.0.apply(-amount, at: commit.now)
        accounts.1.apply(amount, at: commit.now)
        try store.accounts.saveBalance(of: accounts.0)
        try store.accounts.saveBalance(of: accounts.1)
        let rows = try store.ledger.post(
            row,
            from: accounts.0,
            to: accounts.1,
            amount: amount,
            note: note,
            at: commit.now
        )
        // External accounts have no reader, so their changes are not announced.
        for (account, entry) in [(accounts.0, rows.debit), (accounts.1, rows.credit)] {
            guard let owner = account.owner else { continue }
            try commit.record(.account, account.row, audience: .user(owner), version: account.version, in: store)
            try commit.record(.transaction, entry, audience: .user(owner), version: 1, in: store)
        }
        return rows.transfer
    }

    private static func readTransfer(_ call: Call) throws(Problem) -> Reply? {
        try Negotiation.requireJSON(call.request)
        let row = try call.row(.transfer)
        let body = try call.read { store -> [UInt8] in
            guard let transfer = try store.ledger.transfer(row), try isParty(call.viewer, to: transfer, in: store)
            else {
                throw ProblemType.notFound("You have no transfer xfer_\(row).")
            }
            return transfer.json
        }
        return .json(.ok, body)
    }

    private static func isParty(_ viewer: Int64, to transfer: TransferRow, in store: Store) throws -> Bool {
        for account in [transfer.source, transfer.target] {
            if try store.accounts.find(account)?.owner == viewer { return true }
        }
        return false
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

import Larder
import LarderCoding
import LarderDemo
import LarderModels

/// `larder accounts` and `larder transfer`.
struct BankCommand {
    let context: CommandContext
    private var bank: Bank { context.client.bank }
    private var terminal: Terminal { context.terminal }

    // MARK: Accounts

    func accounts() async throws {
        let reading = try await context.read(bank.accounts, called: "balances")
        let accounts = reading.snapshot.value?.items ?? []
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("badge", reading.snapshot.badgeJSON),
                    ("items", .array(try accounts.map { try JSONValue(encoding: $0) })),
                    ("unresolved", .array(try bank.unresolved.map(context.json))),
                ])
            )
        }
        show(accounts)
        printUnresolved()
        terminal.line(context.footer(reading))
    }

    /// The balance of one account, which the server has confirmed within 15 seconds, and its newest transactions, which may be older.
    func account(_ name: String) async throws {
        let list = try await context.read(bank.accounts, called: "accounts").snapshot.value?.items ?? []
        let id = try Self.account(name, list).id
        let balance: Snapshot<Account>
        do { balance = try await context.cache.snapshot(bank.account(id), context.askedPolicy) } catch {
            throw Failure(
                "The balance of \(id) cannot be confirmed: \(Failure.sentence(error.description)) 'larder accounts' shows the last "
                    + "known balances."
            )
        }
        guard let account = balance.value else { return }
        let reading = try await context.read(bank.transactions(id), called: "transactions of \(id)")
        let transactions = context.first(
            context.arguments.limit ?? 10,
            of: reading.snapshot,
            called: "transactions"
        )
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("badge", balance.badgeJSON), ("item", try JSONValue(encoding: account)),
                    ("transactions", try reading.snapshot.json(with: transactions)),
                ])
            )
        }
        show([account])
        terminal.line(terminal.badge(balance, at: context.now))
        let amounts = transactions.map { MoneyText.text($0.amount) }
        let room = amounts.map(\.count).max() ?? 0
        for (transaction, amount) in zip(transactions, amounts) {
            let padding = String(repeating: " ", count: room - amount.count)
            let date = String(transaction.postedAt.prefix(10))
            let words = [transaction.counterparty, transaction.note].filter { !$0.isEmpty }
            terminal.line("  \(terminal.paint(date, .dim))  \(padding)\(amount)  \(words.joined(separator: ": "))")
        }
        terminal.line(context.footer(reading))
    }

    private func show(_ accounts: [Account]) {
        let width = accounts.map { TextWidth.columns($0.name) }.max() ?? 0
        let amounts = accounts.map { MoneyText.text($0.balance) }
        let room = amounts.map(\.count).max() ?? 0
        for (account, amount) in zip(accounts, amounts) {
            let padding = String(repeating: " ", count: room - amount.count)
            let status = account.status == "open" ? "" : "  " + terminal.paint(account.status, .red)
            terminal.line(
                "\(terminal.paint(TextWidth.pad(account.id, 12), .dim)) "
                    + "\(TextWidth.pad(account.name, width))  \(padding)\(amount)\(status)"
            )
        }
    }

    private func printUnresolved() {
        for entry in bank.unresolved {
            terminal.line(
                terminal.paint("unresolved since \(TimeText.text(from: entry.enqueuedAt, to: context.now)): ", .yellow)
                    + context.describe(entry) + " (" + context.stateText(entry) + ")"
            )
        }
    }

    // MARK: Transfer

    func transfer(_ from: String, _ to: String, _ amount: String, _ note: String) async throws {
        // Rejects invalid amounts before any request.
        try MoneyText.check(amount)
        guard context.connection.isOpen else {
            throw Failure(
                "A transfer requires the server. Nothing was sent; try again when the server answers."
            )
        }
        let accounts = try await context.read(bank.accounts, called: "accounts").snapshot.value?.items ?? []
        let source = try Self.account(from, accounts)
        let target = try Self.found(to, accounts)?.id ?? to
        let money = try MoneyText.parse(amount, currency: source.balance.currency)
        let order = Bank.TransferOrder(from: source.id, to: target, money, note: note)
        let transfer: Transfer
        do { transfer = try await bank.transfer(order, given: try await bank.validatedAccounts()) } catch {
            guard error.code == .inDoubt, let id = error.operation else { throw Self.addingHint(to: error) }
            return try await resolve(id, order)
        }
        try await report(transfer)
        if !terminal.isJSON { printUnresolved() }
    }

    private func report(_ transfer: Transfer) async throws {
        guard !terminal.isJSON else {
            return terminal.json(.members([("transfer", try JSONValue(encoding: transfer))]))
        }
        let text =
            "\(transfer.id) \(transfer.status): \(MoneyText.text(transfer.amount)) from \(transfer.fromAccountID) "
            + "to \(transfer.toAccountID)"
        terminal.line(terminal.paint("✓ ", .green) + text)
        if let accounts = try await context.readIfAvailable(bank.accounts).snapshot.value?.items { show(accounts) }
    }

    /// The outcome is unknown: waits for the retries under the same idempotency key.
    private func resolve(_ id: OperationID, _ order: Bank.TransferOrder) async throws {
        terminal.note("no reply; retrying with the same idempotency key, so the money moves at most once")
        await context.drain()
        let text = "\(MoneyText.text(order.amount)) from \(order.fromAccountID) to \(order.toAccountID)"
        switch context.events.outcome(of: id) {
        case .accepted:
            guard !terminal.isJSON else {
                return terminal.json(
                    .members([("outcome", .string("resolved")), ("operation", .integer(id.rawValue))])
                )
            }
            terminal.line(terminal.paint("✓ ", .green) + "resolved: \(text) was moved once")
            if let accounts = try await context.readIfAvailable(bank.accounts).snapshot.value?.items { show(accounts) }
        case .rejected(let rejection): throw Self.addingHint(to: rejection)
        default:
            throw Failure(
                "Unresolved: it is not known yet whether \(text) was moved. The next command that reaches the server resolves it; "
                    + "the money moves at most once. 'larder accounts' shows unresolved transfers."
            )
        }
    }

    /// Adds what to do about a rejection.
    private static func addingHint(to error: LarderError) -> any Error {
        let hint: String? =
            switch Bank.rejection(error) {
            case .insufficientFunds?: "'larder accounts' shows the balances."
            case .accountClosed?: "Choose another account; 'larder accounts' lists yours."
            case .currencyMismatch?: "Both accounts must have the currency of the amount."
            default: nil
            }
        guard let hint else { return error }
        return Failure("\(Failure.sentence(error.description)) \(hint)")
    }

    private static func account(_ name: String, _ accounts: [Account]) throws(Failure) -> Account {
        if let account = try found(name, accounts) { return account }
        throw Failure("No account is called '\(name)'. Use one of \(names(accounts)).")
    }

    /// The account with an ID or a name; nil if there is none.
    private static func found(_ name: String, _ accounts: [Account]) throws(Failure) -> Account? {
        let found = accounts.filter { $0.id == name || $0.name.lowercased() == name.lowercased() }
        guard found.count > 1 else { return found.first }
        throw Failure("More than one account is called '\(name)'. Use one of \(names(accounts)).")
    }

    private static func names(_ accounts: [Account]) -> String { accounts.map(\.id).joined(separator: ", ") }
}

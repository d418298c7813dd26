import Larder
import LarderCoding
import LarderModels

/// `larder accounts` and `larder transfer`: the server's word for everything.
struct BankCommand {
    let kitchen: Kitchen
    private var bank: Bank { kitchen.client.bank }
    private var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    // MARK: Accounts

    func accounts() async throws {
        let reading = try await kitchen.look(bank.accounts)
        guard let accounts = reading.snapshot.value?.items else {
            if let error = reading.snapshot.refreshError, kitchen.connection.isOpen {
                throw Failure(error, server: kitchen.arguments.server)
            }
            let server = kitchen.arguments.server
            throw Failure("Balances are never kept on a disk: \(server) has to answer. Try again then.")
        }
        if terminal.isJSON {
            return terminal.json(
                .members([
                    ("badge", Badge(reading.snapshot).json),
                    ("items", .array(try accounts.map { try JSONValue(encoding: $0) })),
                    ("unresolved", .array(try bank.unresolved.map(kitchen.json))),
                ])
            )
        }
        show(accounts)
        tellUnresolved()
        terminal.line(kitchen.footer(reading))
    }

    private func show(_ accounts: [Account]) {
        let width = accounts.map { TextWidth.columns(TextWidth.clean($0.name)) }.max() ?? 0
        let amounts = accounts.map { TextWidth.clean(MoneyText.text($0.balance)) }
        let room = amounts.map(\.count).max() ?? 0
        for (account, amount) in zip(accounts, amounts) {
            let padding = String(repeating: " ", count: room - amount.count)
            let status = account.status == "open" ? "" : "  " + terminal.paint(TextWidth.clean(account.status), .red)
            terminal.line(
                "\(terminal.paint(TextWidth.pad(TextWidth.clean(account.id), 12), .dim)) "
                    + "\(TextWidth.pad(TextWidth.clean(account.name), width))  \(padding)\(amount)\(status)"
            )
        }
    }

    private func tellUnresolved() {
        for entry in bank.unresolved {
            terminal.line(
                terminal.paint("unresolved since \(Ages.text(from: entry.enqueuedAt, to: kitchen.now)): ", .yellow)
                    + Kitchen.words(entry) + " (" + kitchen.standing(entry) + ")"
            )
        }
    }

    // MARK: Transfer

    func transfer(_ from: String, _ to: String, _ amount: String, _ note: String) async throws {
        // Before anything is asked: what is wrong in itself needs no server to say so.
        try MoneyText.check(amount)
        guard kitchen.connection.isOpen else {
            throw Failure(
                "Money moves only with the server's word for it. Nothing was sent; try again when it answers."
            )
        }
        let accounts = try await kitchen.read(bank.accounts, called: "accounts").snapshot.value?.items ?? []
        let source = try Self.account(from, accounts)
        let target = accounts.first { Self.isCalled(to, $0) }?.id ?? to
        let money = try MoneyText.parse(amount, currency: source.balance.currency)
        let order = Bank.TransferOrder(from: source.id, to: target, money, note: note)
        let transfer: Transfer
        do { transfer = try await bank.transfer(order) } catch {
            guard error.code == .inDoubt, let id = error.operation else { throw Self.explained(error) }
            return try await resolve(id, order)
        }
        try await tell(transfer)
        if !terminal.isJSON { tellUnresolved() }
    }

    private func tell(_ transfer: Transfer) async throws {
        guard !terminal.isJSON else {
            return terminal.json(.members([("transfer", try JSONValue(encoding: transfer))]))
        }
        let text =
            "\(transfer.id) \(transfer.status): \(MoneyText.text(transfer.amount)) from \(transfer.fromAccountId) "
            + "to \(transfer.toAccountId)"
        terminal.line(terminal.paint("✓ ", .green) + TextWidth.clean(text))
        if let accounts = try await kitchen.look(bank.accounts).snapshot.value?.items { show(accounts) }
    }

    /// Nobody knows what became of it: it is asked for again under its key, for as long as one may wait here.
    private func resolve(_ id: OperationID, _ order: Bank.TransferOrder) async throws {
        terminal.note("no reply came; asking again under the same key, which moves the money once at most")
        await kitchen.drain()
        let text = "\(MoneyText.text(order.amount)) from \(order.fromAccountId) to \(order.toAccountId)"
        switch kitchen.journal.end(of: id) {
        case .accepted:
            guard !terminal.isJSON else {
                return terminal.json(
                    .members([("outcome", .string("resolved")), ("operation", .integer(id.rawValue))])
                )
            }
            terminal.line(terminal.paint("✓ ", .green) + "resolved: \(text) was moved, once")
            if let accounts = try await kitchen.look(bank.accounts).snapshot.value?.items { show(accounts) }
        case .refused(let refusal): throw Self.explained(refusal)
        default:
            throw Failure(
                "Unresolved: nobody knows yet whether \(text) was moved. It resolves itself with the next command that reaches "
                    + "the server, and never moves twice; larder accounts shows it."
            )
        }
    }

    /// What the bank says, with what to do about it.
    private static func explained(_ error: LarderError) -> any Error {
        let hint: String? =
            switch Bank.refusal(error) {
            case .insufficientFunds?: "larder accounts shows what there is."
            case .accountClosed?: "Choose another account; larder accounts lists yours."
            case .currencyMismatch?: "Both accounts need the amount's currency."
            default: nil
            }
        guard let hint else { return error }
        return Failure("\(Failure.sentence(error.description)) \(hint)")
    }

    private static func account(_ name: String, _ accounts: [Account]) throws -> Account {
        let found = accounts.filter { isCalled(name, $0) }
        if found.count == 1 { return found[0] }
        let names = accounts.map(\.id).joined(separator: ", ")
        throw found.isEmpty
            ? Failure("None of your accounts is called «\(name)». There are \(names).")
            : Failure("More than one account is called «\(name)». Use one of \(names).")
    }

    private static func isCalled(_ name: String, _ account: Account) -> Bool {
        account.id == name || account.name.lowercased() == name.lowercased()
    }
}

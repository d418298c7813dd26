import LarderCoding
import LarderSQLite
import LarderTime

/// An account row. Amounts are integers in the currency's minor unit.
struct AccountRow {
    let row: Int64
    /// Nil for external accounts: shops, employers, opening balances.
    let owner: Int64?
    let name: String
    let kind: String
    let currency: String
    let isOpen: Bool
    let opened: WallTime
    var balance: Int64
    var version: Int64
    var updated: WallTime

    /// Only external accounts may be overdrawn.
    var mayOverdraw: Bool { owner == nil }

    /// Changes the balance by an amount in the account's currency.
    mutating func apply(_ amount: Int64, at time: WallTime) {
        balance += amount
        version += 1
        updated = time
    }

    func append(to bytes: inout [UInt8]) {
        var writer = JSONWriter(capacity: 320)
        writer.beginObject()
        writer.key("id")
        writer.identifier(.account, row)
        writer.key("name")
        writer.string(name)
        writer.key("kind")
        writer.string(kind)
        writer.key("status")
        writer.string(isOpen ? "open" : "closed")
        writer.key("balance")
        writer.money(balance, currency)
        writer.key("openedAt")
        writer.timestamp(opened)
        writer.key("version")
        writer.integer(version)
        writer.key("updatedAt")
        writer.timestamp(updated)
        writer.endObject()
        bytes.append(contentsOf: writer.bytes)
    }
}

extension JSONWriter {
    /// An amount as the API states it: integer minor units and an ISO 4217 code.
    mutating func money(_ minorUnits: Int64, _ currency: String) {
        beginObject()
        key("minorUnits")
        integer(minorUnits)
        key("currency")
        string(currency)
        endObject()
    }

    mutating func timestamp(_ time: WallTime) { string(time.rfc3339()) }

    mutating func identifier(_ kind: EntityKind, _ row: Int64) { string(EntityID(kind, row).text) }
}

/// Accounts and their balances. A balance is stored beside the ledger and checked against it (`LedgerCheck`).
final class AccountTable {
    private let insert: Statement
    private let select: Statement
    private let selectOwned: Statement
    private let update: Statement

    init(_ database: Database) throws(SQLiteError) {
        insert = try database.prepare(
            """
            INSERT INTO accounts (id, owner, name, kind, currency, status, opened, balance, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, ?, 0, 1, ?)
            """
        )
        select = try database.prepare("SELECT * FROM accounts WHERE id = ?")
        selectOwned = try database.prepare("SELECT * FROM accounts WHERE owner = ? ORDER BY id")
        update = try database.prepare("UPDATE accounts SET balance = ?, version = ?, updated = ? WHERE id = ?")
    }

    func add(_ account: AccountRow) throws(SQLiteError) {
        try insert.bind(account.row, at: 1)
        try insert.bind(account.owner, at: 2)
        try insert.bind(account.name, at: 3)
        try insert.bind(account.kind, at: 4)
        try insert.bind(account.currency, at: 5)
        try insert.bind(account.isOpen ? "open" : "closed", at: 6)
        try insert.bind(account.opened.milliseconds, at: 7)
        try insert.bind(account.updated.milliseconds, at: 8)
        try insert.run()
    }

    func find(_ row: Int64) throws(SQLiteError) -> AccountRow? {
        defer { select.reset() }
        try select.bind(row, at: 1)
        return try select.step() ? Self.read(select) : nil
    }

    func owned(by user: Int64) throws(SQLiteError) -> [AccountRow] {
        defer { selectOwned.reset() }
        try selectOwned.bind(user, at: 1)
        var accounts: [AccountRow] = []
        while try selectOwned.step() { accounts.append(Self.read(selectOwned)) }
        return accounts
    }

    func saveBalance(of account: AccountRow) throws(SQLiteError) {
        try update.bind(account.balance, at: 1)
        try update.bind(account.version, at: 2)
        try update.bind(account.updated.milliseconds, at: 3)
        try update.bind(account.row, at: 4)
        try update.run()
    }

    private static func read(_ statement: Statement) -> AccountRow {
        AccountRow(
            row: statement.int64(0),
            owner: statement.isNull(1) ? nil : statement.int64(1),
            name: statement.text(2),
            kind: statement.text(3),
            currency: statement.text(4),
            isOpen: statement.text(5) == "open",
            opened: WallTime(milliseconds: statement.int64(6)),
            balance: statement.int64(7),
            version: statement.int64(8),
            updated: WallTime(milliseconds: statement.int64(9))
        )
    }
}

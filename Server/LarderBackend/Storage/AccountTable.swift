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
    var balance: Int64 = 0
    var version: Int64 = 1
    var updated: WallTime

    /// Only external accounts may be overdrawn.
    var mayOverdraw: Bool { owner == nil }

    /// Changes the balance by an amount in the account's currency.
    mutating func apply(_ amount: Int64, at time: WallTime) {
        balance += amount
        version += 1
        updated = time
    }

    var json: [UInt8] {
        JSONValue.members([
            "id": EntityID(.account, row).json, "name": .string(name), "kind": .string(kind),
            "status": .string(isOpen ? "open" : "closed"), "balance": .money(balance, currency),
            "openedAt": opened.json, "version": .integer(version), "updatedAt": updated.json,
        ]).encoded
    }
}

/// Accounts and their balances. A balance is stored beside the ledger and checked against it (`LedgerCheck`).
struct AccountTable {
    let sql: SQL

    func add(_ account: AccountRow) throws(SQLiteError) {
        try sql.run(
            """
            INSERT INTO accounts (id, owner, name, kind, currency, status, opened, balance, version, updated)
            VALUES (?, ?, ?, ?, ?, ?, ?, 0, 1, ?)
            """,
            [
                account.row, account.owner, account.name, account.kind, account.currency,
                account.isOpen ? "open" : "closed", account.opened, account.updated,
            ]
        )
    }

    func find(_ row: Int64) throws(SQLiteError) -> AccountRow? {
        try sql.first("SELECT * FROM accounts WHERE id = ?", [row], Self.read)
    }

    func owned(by user: Int64) throws(SQLiteError) -> [AccountRow] {
        try sql.all("SELECT * FROM accounts WHERE owner = ? ORDER BY id", [user], Self.read)
    }

    func saveBalance(of account: AccountRow) throws(SQLiteError) {
        try sql.run(
            "UPDATE accounts SET balance = ?, version = ?, updated = ? WHERE id = ?",
            [account.balance, account.version, account.updated, account.row]
        )
    }

    private static func read(_ row: Statement) -> AccountRow {
        AccountRow(
            row: row.int64(0),
            owner: row.optional(1),
            name: row.text(2),
            kind: row.text(3),
            currency: row.text(4),
            isOpen: row.text(5) == "open",
            opened: row.time(6),
            balance: row.int64(7),
            version: row.int64(8),
            updated: row.time(9)
        )
    }
}

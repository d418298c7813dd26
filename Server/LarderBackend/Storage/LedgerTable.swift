import LarderCoding
import LarderSQLite
import LarderTime

/// A transfer of money between two accounts of one currency.
struct TransferRow {
    let row: Int64
    let source: Int64
    let target: Int64
    let amount: Int64
    let currency: String
    let note: String
    let at: WallTime

    var json: [UInt8] {
        JSONValue.members([
            "id": EntityID(.transfer, row).json, "fromAccountId": EntityID(.account, source).json,
            "toAccountId": EntityID(.account, target).json, "amount": .money(amount, currency),
            "note": .string(note), "status": .string("completed"), "createdAt": at.json, "version": .integer(1),
            "updatedAt": at.json,
        ]).encoded
    }
}

/// The ledger (double entry): every transfer is two entries that sum to zero, and no row is ever changed.
struct LedgerTable {
    let sql: SQL

    /// Writes a transfer and its two entries; returns the rows of the transfer and of both entries.
    func post(
        _ row: Int64?,
        from source: AccountRow,
        to target: AccountRow,
        amount: Int64,
        note: String,
        at: WallTime
    ) throws(SQLiteError) -> (transfer: Int64, debit: Int64, credit: Int64) {
        let transfer = try sql.insert(
            "INSERT INTO transfers (id, source, target, amount, currency, note, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [row, source.row, target.row, amount, source.currency, note, at]
        )
        let debit = try entry(transfer, source, -amount, at)
        let credit = try entry(transfer, target, amount, at)
        return (transfer, debit, credit)
    }

    /// Writes one entry of a transfer with the balance of its account after the transfer.
    private func entry(_ transfer: Int64, _ account: AccountRow, _ amount: Int64, _ at: WallTime) throws(SQLiteError)
        -> Int64
    {
        try sql.insert(
            "INSERT INTO entries (transfer, account, amount, balance_after, at) VALUES (?, ?, ?, ?, ?)",
            [transfer, account.row, amount, account.balance, at]
        )
    }

    func transfer(_ row: Int64) throws(SQLiteError) -> TransferRow? {
        try sql.first(
            "SELECT id, source, target, amount, currency, note, at FROM transfers WHERE id = ?",
            [row]
        ) { transfer in
            TransferRow(
                row: row,
                source: transfer.int64(1),
                target: transfer.int64(2),
                amount: transfer.int64(3),
                currency: transfer.text(4),
                note: transfer.text(5),
                at: transfer.time(6)
            )
        }
    }

    /// The lowest and highest entry of an account.
    func extent(account: Int64) throws(SQLiteError) -> ClosedRange<Int64>? {
        try sql.range("SELECT min(id), max(id) FROM entries WHERE account = ?", [account])
    }

    private static let select: SQLText = """
        SELECT e.id, e.transfer, e.account, e.amount, e.balance_after, e.at, t.currency, t.note, a.name, p.handle
        FROM entries e JOIN transfers t ON t.id = e.transfer
        JOIN accounts a ON a.id = CASE WHEN t.source = e.account THEN t.target ELSE t.source END
        LEFT JOIN profiles p ON p.id = a.owner
        """

    /// Appends one entry of the ledger as a transaction; nil if there is none.
    func append(_ entry: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> EntityVersion? {
        try sql.first("\(Self.select) WHERE e.id = ?", [entry]) {
            bytes += Self.json($0)
            return EntityVersion(1, $0.time(5))
        }
    }

    /// The transactions of an account, newest first: their rows and their JSON.
    func page(
        _ start: PageStart,
        account: Int64,
        limit: Int
    ) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        try sql.page(start, of: "e.id", limit: limit, "\(Self.select) WHERE e.account = ?3 AND", [account]) {
            ($0.int64(0), Self.json($0))
        }
    }

    /// The entry of the current row, as a transaction.
    private static func json(_ row: Statement) -> [UInt8] {
        let at = row.time(5).json
        return JSONValue.members([
            "id": EntityID(.transaction, row.int64(0)).json, "accountId": EntityID(.account, row.int64(2)).json,
            "transferId": EntityID(.transfer, row.int64(1)).json, "amount": .money(row.int64(3), row.text(6)),
            "balanceAfter": .money(row.int64(4), row.text(6)),
            // The other person is named by handle: both parties know the person, but not which account it was.
            "counterparty": .string(row.isNull(9) ? row.text(8) : "@" + row.text(9)), "note": .string(row.text(7)),
            "postedAt": at, "version": .integer(1), "updatedAt": at,
        ]).encoded
    }
}

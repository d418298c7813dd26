import LarderCoding
import LarderSQLite
import LarderTime

/// The ledger (double entry): every transfer is two entries that sum to zero, and no row is ever changed.
struct LedgerTable {
    let sql: SQL

    /// Moves money: writes a transfer and its two entries, and sets the balances of the accounts, which the caller saves.
    ///
    /// - Parameter row: that of the transfer; nil for the next one.
    /// - Returns: the row of the transfer, and the transactions to save: those of accounts with an owner.
    func post(
        _ row: Int64?,
        from source: inout EntityRow,
        to target: inout EntityRow,
        _ amount: Int64,
        _ note: String,
        _ at: WallTime
    ) throws(SQLiteError) -> (transfer: Int64, transactions: [EntityRow]) {
        source.balance -= amount
        target.balance += amount
        let transfer = try sql.insert(
            "INSERT INTO transfers (id, source, target, amount, currency, note, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [row, source.id.row, target.id.row, amount, source.currency, note, at]
        )
        var transactions: [EntityRow] = []
        for (account, amount) in [(source, -amount), (target, amount)] {
            let entry = try sql.insert(
                "INSERT INTO entries (transfer, account, amount, balance_after, at) VALUES (?, ?, ?, ?, ?)",
                [transfer, account.id.row, amount, account.balance, at]
            )
            // External accounts have no reader.
            guard account.list != 0 else { continue }
            let id = EntityID(.transaction, entry)
            transactions.append(EntityRow(id: id, list: account.id.row, members: JSONObject(), updated: at))
        }
        return (transfer, transactions)
    }

    /// A transfer of money between two accounts of one currency; empty if there is none.
    func json(transfer row: Int64) throws(SQLiteError) -> [UInt8] {
        try sql.first("SELECT source, target, amount, currency, note, at FROM transfers WHERE id = ?", [row]) {
            transfer in
            let at = transfer.time(5).json
            return JSONValue.members([
                "id": EntityID(.transfer, row).json, "fromAccountId": EntityID(.account, transfer.int64(0)).json,
                "toAccountId": EntityID(.account, transfer.int64(1)).json,
                "amount": .money(transfer.int64(2), transfer.text(3)), "note": .string(transfer.text(4)),
                "status": .string("completed"), "createdAt": at, "version": .integer(1), "updatedAt": at,
            ]).encoded
        } ?? []
    }

    /// Whether one of the accounts of a transfer is the person's.
    func isParty(_ user: Int64, to transfer: Int64) throws(SQLiteError) -> Bool {
        let sql: SQLText = """
            SELECT 1 FROM transfers t JOIN entities a ON a.kind = 3 AND a.id IN (t.source, t.target)
            WHERE t.id = ? AND a.list = ?
            """
        return try self.sql.integer(sql, [transfer, user]) != nil
    }

    /// Appends one entry of the ledger as a transaction.
    func append(transaction entry: Int64, to bytes: inout [UInt8]) throws(SQLiteError) {
        bytes +=
            try sql.first(
                """
                SELECT e.id, e.transfer, e.account, e.amount, e.balance_after, e.at, t.currency, t.note, a.name, p.name
                FROM entries e JOIN transfers t ON t.id = e.transfer
                JOIN entities a ON a.kind = 3 AND a.id = CASE WHEN t.source = e.account THEN t.target ELSE t.source END
                LEFT JOIN entities p ON p.kind = 1 AND p.id = a.list WHERE e.id = ?
                """,
                [entry],
                Self.json
            ) ?? []
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

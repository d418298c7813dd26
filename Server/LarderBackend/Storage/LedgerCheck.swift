import LarderSQLite

/// An inconsistency in a ledger.
package struct LedgerFault: Sendable, Hashable, CustomStringConvertible {
    package let description: String
}

/// Checks the whole ledger: that entries sum to zero and that balances equal the sum of their entries.
///
/// Cost: a few scans of the entries. Does not change the state.
enum LedgerCheck {
    static func run(_ database: Database) throws(SQLiteError) -> [LedgerFault] {
        var faults: [LedgerFault] = []
        try collect(
            database,
            "SELECT transfer, sum(amount), count(*) FROM entries GROUP BY transfer HAVING sum(amount) <> 0 OR count(*) <> 2",
            &faults
        ) { "The \($0[2]) entries of transfer xfer_\($0[0]) sum to \($0[1]), not to 0." }
        try collect(
            database,
            "SELECT t.id FROM transfers t LEFT JOIN entries e ON e.transfer = t.id WHERE e.id IS NULL",
            &faults
        ) { "Transfer xfer_\($0[0]) has no entries." }
        try collect(
            database,
            """
            SELECT a.id, a.balance, coalesce(sum(e.amount), 0) FROM accounts a LEFT JOIN entries e ON e.account = a.id
            GROUP BY a.id HAVING a.balance <> coalesce(sum(e.amount), 0)
            """,
            &faults
        ) { "Account acct_\($0[0]) has the balance \($0[1]), but its entries sum to \($0[2])." }
        try collect(
            database,
            """
            SELECT id, balance_after, running FROM (
                SELECT id, balance_after, sum(amount) OVER (PARTITION BY account ORDER BY id) AS running FROM entries
            ) WHERE balance_after <> running
            """,
            &faults
        ) { "Entry txn_\($0[0]) has the balance \($0[1]), but the entries up to it sum to \($0[2])." }
        try collect(
            database,
            """
            SELECT t.id, t.currency, a.currency FROM transfers t JOIN accounts a ON a.id IN (t.source, t.target)
            WHERE a.currency <> t.currency
            """,
            &faults
        ) { "Transfer xfer_\($0[0]) in \($0[1]) involves an account in \($0[2])." }
        try collect(
            database,
            "SELECT id, balance FROM accounts WHERE owner IS NOT NULL AND balance < 0",
            &faults
        ) { "Account acct_\($0[0]) of a person is overdrawn: \($0[1])." }
        return faults
    }

    private static func collect(
        _ database: Database,
        _ sql: SQLText,
        _ faults: inout [LedgerFault],
        _ describe: ([String]) -> String
    ) throws(SQLiteError) {
        let statement = try database.prepare(sql)
        defer { statement.reset() }
        while faults.count < 100, try statement.step() {
            let columns = (0..<statement.columnCount).map { statement.text($0) }
            faults.append(LedgerFault(description: describe(columns)))
        }
    }
}

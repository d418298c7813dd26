import LarderSQLite

/// An inconsistency in a ledger.
package struct LedgerFault: Sendable, Hashable, CustomStringConvertible {
    package let description: String
}

/// Checks the whole ledger: that entries sum to zero and that balances equal the sum of their entries.
///
/// Cost: a few scans of the entries. Does not change the state.
enum LedgerCheck {
    /// Each statement has a row, with a sentence, for each fault.
    private static let checks: [SQLText] = [
        """
        SELECT printf('The %d entries of transfer xfer_%d sum to %d, not to 0.', count(*), transfer, sum(amount))
        FROM entries GROUP BY transfer HAVING sum(amount) <> 0 OR count(*) <> 2
        """,
        """
        SELECT printf('Transfer xfer_%d has no entries.', t.id)
        FROM transfers t LEFT JOIN entries e ON e.transfer = t.id WHERE e.id IS NULL
        """,
        """
        SELECT printf('Account acct_%d has the balance %d, but its entries sum to %d.', a.id, a.balance, sum)
        FROM (
            SELECT *, (SELECT coalesce(sum(amount), 0) FROM entries WHERE account = accounts.id) AS sum
            FROM \(WorldSchema.accounts) AS accounts
        ) a WHERE a.balance <> sum
        """,
        """
        SELECT printf('Entry txn_%d has the balance %d, but the entries up to it sum to %d.', id, balance_after, running)
        FROM (
            SELECT id, balance_after, sum(amount) OVER (PARTITION BY account ORDER BY id) AS running FROM entries
        ) WHERE balance_after <> running
        """,
        """
        SELECT printf('Transfer xfer_%d in %s involves an account in %s.', t.id, t.currency, a.currency)
        FROM (
            SELECT min(id) AS id, source AS account, currency FROM transfers GROUP BY source, currency
            UNION ALL SELECT min(id), target, currency FROM transfers GROUP BY target, currency
        ) t JOIN \(WorldSchema.accounts) a ON a.id = t.account WHERE a.currency <> t.currency
        """,
        """
        SELECT printf('Account acct_%d of a person is overdrawn: %d.', id, balance)
        FROM \(WorldSchema.accounts) WHERE owner IS NOT NULL AND balance < 0
        """,
    ]

    /// At most 100 faults.
    static func run(_ database: Database) throws(SQLiteError) -> [LedgerFault] {
        let sql = SQL(database)
        var faults: [LedgerFault] = []
        for check in checks {
            faults += try sql.all("\(check) LIMIT 100") { LedgerFault(description: $0.text(0)) }
        }
        return Array(faults.prefix(100))
    }
}

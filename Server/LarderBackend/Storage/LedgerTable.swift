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

    func append(to bytes: inout [UInt8]) {
        var writer = JSONWriter(capacity: 320)
        writer.beginObject()
        writer.key("id")
        writer.identifier(.transfer, row)
        writer.key("fromAccountId")
        writer.identifier(.account, source)
        writer.key("toAccountId")
        writer.identifier(.account, target)
        writer.key("amount")
        writer.money(amount, currency)
        writer.key("note")
        writer.string(note)
        writer.key("status")
        writer.string("completed")
        writer.key("createdAt")
        writer.timestamp(at)
        writer.key("version")
        writer.integer(1)
        writer.key("updatedAt")
        writer.timestamp(at)
        writer.endObject()
        bytes.append(contentsOf: writer.bytes)
    }
}

/// The ledger (double entry): every transfer is two entries that sum to zero, and no row is ever changed.
final class LedgerTable {
    private let insertTransfer: Statement
    private let insertEntry: Statement
    private let selectTransfer: Statement
    private let older: Statement
    private let newer: Statement
    private let one: Statement
    private let bounds: Statement

    init(_ database: Database) throws(SQLiteError) {
        insertTransfer = try database.prepare(
            "INSERT INTO transfers (id, source, target, amount, currency, note, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        insertEntry = try database.prepare(
            "INSERT INTO entries (transfer, account, amount, balance_after, at) VALUES (?, ?, ?, ?, ?)"
        )
        selectTransfer = try database.prepare(
            "SELECT id, source, target, amount, currency, note, at FROM transfers WHERE id = ?"
        )
        older = try database.prepare(
            """
            SELECT e.id, e.transfer, e.account, e.amount, e.balance_after, e.at, t.currency, t.note, a.name, p.handle
            FROM entries e JOIN transfers t ON t.id = e.transfer
            JOIN accounts a ON a.id = CASE WHEN t.source = e.account THEN t.target ELSE t.source END
            LEFT JOIN profiles p ON p.id = a.owner
            WHERE e.account = ? AND e.id < ? ORDER BY e.id DESC LIMIT ?
            """
        )
        newer = try database.prepare(
            """
            SELECT e.id, e.transfer, e.account, e.amount, e.balance_after, e.at, t.currency, t.note, a.name, p.handle
            FROM entries e JOIN transfers t ON t.id = e.transfer
            JOIN accounts a ON a.id = CASE WHEN t.source = e.account THEN t.target ELSE t.source END
            LEFT JOIN profiles p ON p.id = a.owner
            WHERE e.account = ? AND e.id > ? ORDER BY e.id LIMIT ?
            """
        )
        one = try database.prepare(
            """
            SELECT e.id, e.transfer, e.account, e.amount, e.balance_after, e.at, t.currency, t.note, a.name, p.handle
            FROM entries e JOIN transfers t ON t.id = e.transfer
            JOIN accounts a ON a.id = CASE WHEN t.source = e.account THEN t.target ELSE t.source END
            LEFT JOIN profiles p ON p.id = a.owner
            WHERE e.id = ?
            """
        )
        bounds = try database.prepare("SELECT min(id), max(id) FROM entries WHERE account = ?")
    }

    /// Writes a transfer and its two entries; returns the rows of the transfer and of both entries.
    func post(
        _ row: Int64?,
        from source: AccountRow,
        to target: AccountRow,
        amount: Int64,
        note: String,
        at: WallTime,
        in database: Database
    ) throws(SQLiteError) -> (transfer: Int64, debit: Int64, credit: Int64) {
        try insertTransfer.bind(row, at: 1)
        try insertTransfer.bind(source.row, at: 2)
        try insertTransfer.bind(target.row, at: 3)
        try insertTransfer.bind(amount, at: 4)
        try insertTransfer.bind(source.currency, at: 5)
        try insertTransfer.bind(note, at: 6)
        try insertTransfer.bind(at.milliseconds, at: 7)
        try insertTransfer.run()
        let transfer = database.lastInsertRowID
        let debit = try entry(transfer, source, -amount, at, in: database)
        let credit = try entry(transfer, target, amount, at, in: database)
        return (transfer, debit, credit)
    }

    /// Writes one entry of a transfer with the balance of its account after the transfer.
    private func entry(
        _ transfer: Int64,
        _ account: AccountRow,
        _ amount: Int64,
        _ at: WallTime,
        in database: Database
    ) throws(SQLiteError) -> Int64 {
        try insertEntry.bind(transfer, at: 1)
        try insertEntry.bind(account.row, at: 2)
        try insertEntry.bind(amount, at: 3)
        try insertEntry.bind(account.balance, at: 4)
        try insertEntry.bind(at.milliseconds, at: 5)
        try insertEntry.run()
        return database.lastInsertRowID
    }

    func transfer(_ row: Int64) throws(SQLiteError) -> TransferRow? {
        defer { selectTransfer.reset() }
        try selectTransfer.bind(row, at: 1)
        guard try selectTransfer.step() else { return nil }
        return TransferRow(
            row: row,
            source: selectTransfer.int64(1),
            target: selectTransfer.int64(2),
            amount: selectTransfer.int64(3),
            currency: selectTransfer.text(4),
            note: selectTransfer.text(5),
            at: WallTime(milliseconds: selectTransfer.int64(6))
        )
    }

    /// The lowest and highest entry of an account.
    func extent(account: Int64) throws(SQLiteError) -> ClosedRange<Int64>? {
        defer { bounds.reset() }
        try bounds.bind(account, at: 1)
        guard try bounds.step(), !bounds.isNull(0) else { return nil }
        return bounds.int64(0)...bounds.int64(1)
    }

    /// Appends one entry of the ledger as a transaction; returns whether there is such an entry.
    func append(_ entry: Int64, to bytes: inout [UInt8]) throws(SQLiteError) -> Bool {
        defer { one.reset() }
        try one.bind(entry, at: 1)
        guard try one.step() else { return false }
        Self.appendCurrent(one, to: &bytes)
        return true
    }

    /// The transactions of an account, newest first: their rows and their JSON.
    func page(
        _ start: PageStart,
        account: Int64,
        limit: Int
    ) throws(SQLiteError) -> [(row: Int64, json: [UInt8])] {
        let statement: Statement
        let bound: Int64
        switch start {
        case .newest: (statement, bound) = (older, .max)
        case .after(let row): (statement, bound) = (older, row)
        case .before(let row): (statement, bound) = (newer, row)
        }
        defer { statement.reset() }
        try statement.bind(account, at: 1)
        try statement.bind(bound, at: 2)
        try statement.bind(Int64(limit), at: 3)
        var items: [(row: Int64, json: [UInt8])] = []
        while try statement.step() {
            var json: [UInt8] = []
            Self.appendCurrent(statement, to: &json)
            items.append((statement.int64(0), json))
        }
        if statement === newer { items.reverse() }
        return items
    }

    private static func appendCurrent(_ statement: Statement, to bytes: inout [UInt8]) {
        let at = WallTime(milliseconds: statement.int64(5))
        let currency = statement.text(6)
        var writer = JSONWriter(capacity: 400)
        writer.beginObject()
        writer.key("id")
        writer.identifier(.transaction, statement.int64(0))
        writer.key("accountId")
        writer.identifier(.account, statement.int64(2))
        writer.key("transferId")
        writer.identifier(.transfer, statement.int64(1))
        writer.key("amount")
        writer.money(statement.int64(3), currency)
        writer.key("balanceAfter")
        writer.money(statement.int64(4), currency)
        writer.key("counterparty")
        // The other person is named by handle: both parties know the person, but not which account it was.
        writer.string(statement.isNull(9) ? statement.text(8) : "@" + statement.text(9))
        writer.key("note")
        writer.string(statement.text(7))
        writer.key("postedAt")
        writer.timestamp(at)
        writer.key("version")
        writer.integer(1)
        writer.key("updatedAt")
        writer.timestamp(at)
        writer.endObject()
        bytes.append(contentsOf: writer.bytes)
    }
}

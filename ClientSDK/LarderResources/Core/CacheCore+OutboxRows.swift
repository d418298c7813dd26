import LarderStorage
import LarderTime
import Synchronization

/// Rows of the outbox. They are in a database of their own, which is changed after that of the content.
///
/// The order is: content, rows, memory. If the process dies after the content, the operations are still there and are sent again under
/// their keys. A pending change is shown exactly while its row is stored.
extension CacheCore {
    /// Commits rows and pending changes without notification, also within a commit of content, for which it never waits.
    func carryOutLocally(_ update: CacheUpdate) throws -> Commit {
        var commit = Commit(core: self, stamp: stamps.next(), moment: now())
        _ = try changeRows(&commit) { last in
            try storeRows(of: update)
            return (last, update.local)
        }
        return commit
    }

    /// Stores a new row, and shows its changes.
    ///
    /// - Parameter changes: the pending changes of the row with a number.
    /// - Returns: the number, which counts up without a disk too.
    func commitRow(
        _ row: DiskOutboxRow,
        _ changes: (Int64) -> [CacheUpdate.LocalChange]
    ) throws -> (number: Int64, Commit) {
        var commit = Commit(core: self, stamp: stamps.next(), moment: now())
        let number = try changeRows(&commit) { last in
            let number = try outboxDisk?.write { transaction in try transaction.append(row) } ?? last + 1
            return (number, changes(number))
        }
        return (number, commit)
    }

    /// Stores rows, and then changes memory.
    ///
    /// - Parameter store: gets the number of the row that was stored last; returns that after it, and the changes of memory.
    /// - Returns: the number of the row that was stored last.
    private func changeRows(
        _ commit: inout Commit,
        _ store: (Int64) throws -> (last: Int64, changes: [CacheUpdate.LocalChange])
    ) throws -> Int64 {
        try outboxCommits.withLock { last in
            guard !isClosed else { throw Self.isClosedError }
            let stored = try store(last)
            last = stored.last
            commit.local = stored.changes
            commit.affected = apply(commit)
            return stored.last
        }
    }

    /// Stores the rows that belong to content which was just stored, and then changes memory. If the rows cannot be stored, the content
    /// is shown and the operations stay as they are.
    func settleRows(
        of update: CacheUpdate,
        _ settle: ((CacheUpdate, (CacheUpdate) throws -> Void) throws -> Void)?,
        _ commit: inout Commit
    ) throws {
        var present = commit
        var isShown = false
        func store(_ update: CacheUpdate) throws {
            let settled = present.settled
            _ = try changeRows(&present) { last in
                try storeRows(of: update, settled: settled)
                return (last, update.local)
            }
            isShown = true
        }
        do {
            if let settle { try settle(update, store) } else { try store(update) }
        } catch {
            if !isShown {
                present.affected = apply(present)
                announceLater(present)
            }
            throw error
        }
        commit = present
    }

    private func storeRows(of update: CacheUpdate, settled: Int64? = nil) throws {
        guard let outboxDisk, !update.rows.isEmpty else { return }
        try outboxDisk.write(update.durability, mayUseReserve: update.mayUseReserve) { transaction in
            for body in update.rows { try body(transaction) }
            guard let settled else { return }
            // Another process may have stored a later one.
            let known = Self.number(try transaction.metadata(Self.settledKey)) ?? 0
            guard settled > known else { return }
            try transaction.setMetadata(Array("\(settled)".utf8), for: Self.settledKey)
        }
    }

    // MARK: Power loss

    /// The number of the latest commit whose content preceded rows. It is in both databases: a loss of power may leave the rows and
    /// not the content.
    private static let settledKey = "larder.settled"

    func nextSettled(in transaction: DiskConnection) throws -> Int64 {
        let next = (Self.number(try transaction.metadata(Self.settledKey)) ?? 0) + 1
        try transaction.setMetadata(Array("\(next)".utf8), for: Self.settledKey)
        return next
    }

    /// If the content of operations that have ended was lost with the power, what is stored may lack their effect: it is stale.
    func checkSettled() throws {
        guard let disk, let outboxDisk, let ended = Self.number(try outboxDisk.metadata(Self.settledKey)),
            ended > Self.number(try disk.metadata(Self.settledKey)) ?? 0
        else { return }
        invalidations.markAll(at: stamps.next())
        try disk.write { transaction in
            try storeMarks(in: transaction)
            try transaction.setMetadata(Array("\(ended)".utf8), for: Self.settledKey)
        }
    }

    private static func number(_ stored: [UInt8]?) -> Int64? {
        // A damaged number must not overflow.
        stored.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }.flatMap {
            (0..<Int64.max).contains($0) ? $0 : nil
        }
    }
}

import LarderSQLite
import Synchronization

/// The store of the outbox: a database of its own beside that of the content, with its own connections, locks and log. A change of the
/// user never waits for a commit of content, and the content can be in a directory that the system may remove.
///
/// Both are opened, suspended and erased together. Lock order: the outbox's writer, then the content's.
extension DiskStore {
    /// The directory of the outbox's store.
    package var outboxDirectory: String {
        context.configuration.outboxDirectory ?? context.configuration.directory + "/outbox"
    }

    /// The store of the outbox. Opened by the first call, which throws as `init` does.
    package func outboxStore() throws(DiskError) -> DiskStore {
        do {
            return try outboxStoreOpened.withLock { known in
                if let known { return known }
                var settings = context.configuration
                settings.directory = outboxDirectory
                settings.outboxDirectory = nil
                settings.restartsWhileExists = nil
                settings.content = { [weak self] in self }
                let store = try DiskStore(settings)
                known = store
                return store
            }
        } catch {
            throw DiskError(error)
        }
    }

    /// Removes a directory that contained stores; one with other files stays.
    package static func removeEmptyDirectory(_ path: String) throws(DiskError) {
        do { _ = try DiskFiles(faults: nil).removeDirectory(path) } catch { throw DiskError(error) }
    }

    var openedOutboxStore: DiskStore? { outboxStoreOpened.withLock { $0 } }

    /// Sets the function that returns the operations that this process knows. If the database is damaged, those that cannot be read are
    /// written into the one that replaces it. Called while the store is locked: it must not call the store.
    package func setKnownOperations(_ known: @escaping @Sendable () -> [DiskOutboxRow]) {
        context.knownOperations.withLock { $0 = known }
    }

    /// Identifies a state of the outbox, as far as other processes have changed it.
    package struct OutboxVersion: Sendable, Equatable {
        fileprivate let foreignCommits: UInt64
        fileprivate let generation: Int
    }

    /// Reads all operations of the outbox, unless only this store has changed some since a version was read. Cost: some microseconds then.
    ///
    /// Waits for writers, so that a row that is being removed is not read.
    package func outbox(since version: OutboxVersion?) throws -> (rows: [DiskOutboxRow], version: OutboxVersion)? {
        try changing { state in
            try withWriter(&state) { connection in
                connection.failure = nil
                try connection.checkForeignCommits()
                if connection.database.hasMoved { throw FileMoved() }
                // Before the rows are read: later commits may be read too, and are then read again.
                let now = OutboxVersion(
                    foreignCommits: context.foreignCommits.load(ordering: .acquiring),
                    generation: connection.generation
                )
                if now == version { return nil }
                return try connection.snapshot {
                    var rows = try connection.outbox(after: 0, limit: .max)
                    if connection.database.hasMoved { throw FileMoved() }
                    let notes = try connection.outboxNotes()
                    for index in rows.indices { rows[index].note = notes[rows[index].sequence] }
                    return (rows, now)
                }
            }
        }
    }
}

extension DiskConnection {
    /// The metadata of operations, by their numbers.
    func outboxNotes() throws(DiskError) -> [Int64: [UInt8]] {
        let notes = try all(.outboxNotes) { row -> (Int64, [UInt8])? in
            let key = row.text(0)
            guard let number = DiskOutboxRow.sequence(ofNote: key) else { return nil }
            return value(of: key, .value, row.bytes(1), sum: row.int64(2)).map { (number, $0) }
        }
        return Dictionary(notes, uniquingKeysWith: { first, _ in first })
    }

    /// The largest number used by the outbox.
    func outboxSequence() throws(DiskError) -> Int64 { try first(.outboxSequence) { $0.int64(0) } ?? 0 }
}

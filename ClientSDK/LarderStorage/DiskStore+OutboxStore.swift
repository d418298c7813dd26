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

    /// The store of the outbox, if it was opened.
    var openedOutboxStore: DiskStore? { outboxStoreOpened.withLock { $0 } }

    /// For the store of an outbox: checks before content is stored that the reserve is there and that the file is still the one that
    /// was opened. A missing one is restored. Does nothing while the outbox is empty.
    ///
    /// - Throws: `.full` if the reserve cannot be created: content would use the room that sending needs.
    package func guardOutbox() throws(DiskError) {
        try changing { state in
            guard !state.outbox.rows.isEmpty else { return }
            try keepReserve(&state)
            try withWriter(&state) { connection in
                if connection.database.hasMoved { throw FileMoved() }
                if let problem = connection.problem { try connection.perform { throw problem } }
            }
        }
    }

    /// For the store of an outbox: releases the reserve for content that sending must store; false if there is none.
    package func releaseReserve() throws(DiskError) -> Bool {
        try changing { state in
            guard try DiskReserve(context).release() else { return false }
            state.lacksReserve = true
            try checkpointIfPossible(&state)
            return true
        }
    }

    /// For the store of an outbox: creates the reserve again if there is room for it.
    package func restoreReserve() throws(DiskError) { try changing { state in try restoreReserve(&state) } }

    func restoreReserve(_ state: inout WriterState) throws {
        guard state.lacksReserve, try DiskReserve(context).make() else { return }
        state.lacksReserve = false
    }

    /// For the store of the content: removes the least recently read items, because the outbox needs room; returns how many.
    package func evictForOutbox() throws(DiskError) -> Int {
        try changing { state in
            let count = try giveUpContent(&state)
            if count > 0 { context.post(.evicted(count: count)) }
            try checkpointIfPossible(&state)
            return count
        }
    }

    /// Copies the log into the file, because the other store needs room.
    func emptyLogForOutbox() throws(DiskError) { try changing { state in try checkpointIfPossible(&state) } }

    /// Uses the writer's state, and then delivers the events.
    private func changing<Result: Sendable>(
        _ body: (inout WriterState) throws -> Result
    ) throws(DiskError) -> Result {
        defer { context.deliver() }
        do { return try writer.withLock { state in try body(&state) } } catch { throw DiskError(error) }
    }
}

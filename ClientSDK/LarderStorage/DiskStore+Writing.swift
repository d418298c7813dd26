import Glibc
import LarderSQLite
import Synchronization

/// Transactions of the one writing connection, repeated if the file was replaced or damaged.
extension DiskStore {
    /// Changes several items in one transaction: all of it is stored when this returns, and nothing if it throws.
    ///
    /// - Parameters:
    ///   - durability: the failures that the commit survives.
    ///   - companion: a store in memory that changes with this one: its transaction begins when this one has the disk, so that no
    ///     reader of it waits for the disk's lock, and is stored if and when this one is (`WriteTransaction.companion`).
    ///   - body: must change nothing but the transaction. Another write to this store from within it is a programming error, and
    ///     traps. It may be called a second time, after a damaged database was rebuilt. If it catches an error of the disk, the
    ///     transaction is not committed either.
    /// - Throws: `DiskError`, or what `body` throws.
    package func write<Result: Sendable>(
        _ durability: Durability = .processDeath,
        with companion: DiskStore? = nil,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        try write(durability, with: companion, mayUseReserve: false, body)
    }

    /// Changes several items in one transaction, using the reserved space if the disk is full.
    ///
    /// - Parameter mayUseReserve: whether the write is needed for sending. Cached content is evicted for it too, and `body` is
    ///   called again.
    package func write<Result: Sendable>(
        _ durability: Durability = .processDeath,
        with companion: DiskStore? = nil,
        mayUseReserve: Bool,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        defer { context.deliver() }
        return try writer.withLock { state in
            guard mayUseReserve else {
                let result = Swift.Result { () throws -> Result in
                    try keepReserve(&state)
                    return try commit(&state, durability, with: companion, body)
                }
                guard case .failure(let error) = result, Self.isFull(error),
                    let content = context.configuration.content()
                else { return try result.get() }
                // A change of the user: the logs of both stores are emptied for it.
                try checkpointIfPossible(&state)
                try content.emptyLogForOutbox()
                try keepReserve(&state)
                return try commit(&state, durability, with: companion, body)
            }
            try restoreReserve(&state)
            while true {
                do {
                    return try commit(&state, durability, with: companion, body)
                } catch  where Self.isFull(error) {
                    guard try makeRoom(&state) else { throw error }
                }
            }
        }
    }

    /// Runs a transaction, and applies its outbox changes to the copy.
    func commit<Result: Sendable>(
        _ state: inout WriterState,
        _ durability: Durability,
        with companion: DiskStore? = nil,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        let result = try withWriter(&state) { connection in try transact(connection, durability, companion, body) }
        // The changes of this transaction: each begins with none.
        if let connection = state.connection { state.outbox.apply(connection.outboxChanges) }
        return result
    }

    /// Uses the writing connection, and repeats the work with a new one if the file was replaced or damaged.
    func withWriter<Result>(
        _ state: inout WriterState,
        _ body: (DiskConnection) throws -> Result
    ) throws -> Result {
        var lost: DiskConnection?
        var isSecond = false
        while true {
            let connection = try connectedWriter(&state, lost: lost)
            lost = nil
            do {
                return try body(connection)
            } catch let error as FileMoved {
                guard !isSecond else {
                    throw DiskError(
                        .cannotOpen,
                        "The store was replaced twice during one call. Try again.",
                        cause: error
                    )
                }
                isSecond = true
                lost = connection
                giveUpConnections(&state)
            } catch {
                guard !isSecond, let damage = connection.damage else { throw error }
                isSecond = true
                try recover(&state, damage)
            }
        }
    }

    /// The connection's file was renamed or unlinked.
    struct FileMoved: Error {}

    private func transact<Result: Sendable>(
        _ connection: DiskConnection,
        _ durability: Durability,
        _ companion: DiskStore?,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        let deferred = try begin(connection, durability)
        if context.configuration.isInMemory { writing.withLock { $0 = (pthread_self(), connection) } }
        defer { if context.configuration.isInMemory { writing.withLock { $0 = nil } } }
        do {
            try prepare(connection, deferred)
            guard let companion else { return try transact(connection, companion: nil, body) }
            return try companion.write { try transact(connection, companion: $0.connection, body) }
        } catch {
            // The companion's commit is the last.
            if connection.isWriting { undo(connection, deferred) }
            throw error
        }
    }

    private func transact<Result>(
        _ connection: DiskConnection,
        companion: DiskConnection?,
        _ body: (borrowing WriteTransaction) throws -> Result
    ) throws -> Result {
        // Named: Swift 6.3.1 crashes when it specialises a call with a noncopyable temporary (release builds).
        let transaction = WriteTransaction(connection: connection, companion: companion)
        let result = try body(transaction)
        try commit(connection)
        return result
    }

    private typealias DeferredWrites = (stamps: [(Int64, Int64)], damaged: [(Int64, DiskContext.Damage)])

    private func begin(_ connection: DiskConnection, _ durability: Durability) throws -> DeferredWrites {
        connection.failure = nil
        try connection.perform {
            if connection.durability != durability {
                try connection.database.setDurability(durability == .powerLoss ? .full : .normal)
                connection.durability = durability
            }
            try connection.run(.beginWriting)
            try connection.checkForeignCommits()
        }
        connection.isWriting = true
        connection.createdBlobs = []
        connection.outboxChanges = []
        return context.takeDeferredWrites(256)
    }

    private func prepare(_ connection: DiskConnection, _ deferred: DeferredWrites) throws {
        // Checked with the write lock held: a replacing process takes that lock first, if the file can still be locked.
        if connection.database.hasMoved { throw FileMoved() }
        if let problem = connection.problem { try connection.perform { throw problem } }
        // Before the body, which may store rows equal, down to the checksum, to damaged ones.
        try connection.perform { try connection.performDeferredWrites(deferred) }
    }

    private func commit(_ connection: DiskConnection) throws {
        let evicted = try connection.perform {
            if let damage = connection.damage { throw damage }
            let evicted = try connection.enforceBudget()
            if connection.durability == .powerLoss { try context.blobs.sync(connection.createdBlobs) }
            try connection.run(.commit)
            return evicted
        }
        connection.isWriting = false
        finish(connection, evicted)
    }

    private func undo(_ connection: DiskConnection, _ deferred: DeferredWrites) {
        // Before the lock is released: afterwards other processes may rely on them.
        for name in connection.createdBlobs {
            do { try context.blobs.remove(name) } catch { context.post(.cleaningFailed(DiskError(error))) }
        }
        connection.database.rollBack()
        connection.isWriting = false
        connection.failure = nil
        context.giveBack(deferred.damaged)
    }

    /// The work after a commit. It cannot fail the call: the transaction is stored.
    private func finish(_ connection: DiskConnection, _ evicted: Int) {
        if evicted > 0 { context.post(.evicted(count: evicted)) }
        do {
            _ = try connection.perform { try connection.removeUnusedBlobs(64) }
        } catch {
            // Retried by maintenance.
            context.post(.cleaningFailed(error))
        }
    }
}

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
    ///     reader of it waits for the disk's lock, and is stored if and when this one is (`DiskConnection.companion`).
    ///   - mayUseReserve: for the store of an outbox: whether the write is needed for sending. If the disk is full, it uses the reserved
    ///     space and that of cached content, and `body` is called again.
    ///   - body: must change nothing but the transaction. Another write to this store from within it is a programming error, and
    ///     traps. It may be called a second time, after a damaged database was rebuilt. If it catches an error of the disk, the
    ///     transaction is not committed either.
    /// - Throws: `DiskError`, or what `body` throws.
    package func write<Result: Sendable>(
        _ durability: Durability = .processDeath,
        with companion: DiskStore? = nil,
        mayUseReserve: Bool = false,
        _ body: (DiskConnection) throws -> Result
    ) throws -> Result {
        defer { context.deliver() }
        return try writer.withLock { state in
            var hasShrunk = context.configuration.content() == nil
            while true {
                do {
                    return try commit(&state, durability, with: companion, body)
                } catch  where Self.isFull(error) {
                    guard try mayUseReserve ? makeRoom(&state) : !hasShrunk else { throw error }
                    // A change of the user: the room of operations that were sent is used for it.
                    if !mayUseReserve { try shrink(&state) }
                    hasShrunk = true
                }
            }
        }
    }

    /// Runs a transaction.
    func commit<Result: Sendable>(
        _ state: inout WriterState,
        _ durability: Durability,
        with companion: DiskStore? = nil,
        _ body: (DiskConnection) throws -> Result
    ) throws -> Result {
        try withWriter(&state) { connection in try transact(connection, durability, companion, body) }
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
        _ body: (DiskConnection) throws -> Result
    ) throws -> Result {
        try begin(connection, durability)
        let deferred = context.takeDeferredWrites(256)
        if context.configuration.isInMemory { writing.withLock { $0 = (pthread_self(), connection) } }
        defer { if context.configuration.isInMemory { writing.withLock { $0 = nil } } }
        do {
            try prepare(connection, deferred)
            guard let companion else { return try complete(connection, body) }
            defer { connection.companion = nil }
            return try companion.write { transaction in
                connection.companion = transaction
                return try complete(connection, body)
            }
        } catch {
            // The companion's commit is the last.
            if connection.isWriting { undo(connection, deferred) }
            throw error
        }
    }

    private func complete<Result>(
        _ connection: DiskConnection,
        _ body: (DiskConnection) throws -> Result
    ) throws -> Result {
        let result = try body(connection)
        try commit(connection)
        return result
    }

    private typealias DeferredWrites = (stamps: [(Int64, Int64)], damaged: [(Int64, Int64)])

    private func begin(_ connection: DiskConnection, _ durability: Durability) throws {
        connection.failure = nil
        if connection.durability != durability {
            try connection.perform { try connection.database.setDurability(durability == .powerLoss ? .full : .normal) }
            connection.durability = durability
        }
        try connection.run(.beginWriting)
        connection.isWriting = true
    }

    private func prepare(_ connection: DiskConnection, _ deferred: DeferredWrites) throws {
        try connection.checkForeignCommits()
        // Checked with the write lock held: a replacing process takes that lock first, if the file can still be locked.
        if connection.database.hasMoved { throw FileMoved() }
        if let problem = connection.problem { try connection.perform { throw problem } }
        // Before the body, which may store rows equal, down to the checksum, to damaged ones.
        try connection.performDeferredWrites(deferred)
    }

    private func commit(_ connection: DiskConnection) throws {
        if let damage = connection.damage { throw DiskError(damage) }
        let evicted = try connection.enforceBudget()
        try connection.run(.commit)
        connection.isWriting = false
        if evicted > 0 { context.post(.evicted(count: evicted)) }
    }

    private func undo(_ connection: DiskConnection, _ deferred: DeferredWrites) {
        connection.database.rollBack()
        connection.isWriting = false
        connection.failure = nil
        context.giveBack(deferred.damaged)
    }
}

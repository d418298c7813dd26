import Glibc
import LarderSQLite
import Synchronization

/// Snapshots by pooled connections, repeated if the file was replaced or damaged.
extension DiskStore {
    /// Reads several items in one snapshot.
    ///
    /// - Parameter body: may be called a second time, after a damaged database was rebuilt.
    /// - Throws: `DiskError`, or what `body` throws.
    package func read<Result>(_ body: (DiskConnection) throws -> Result) throws -> Result {
        defer { context.deliver() }
        return try withReader { connection in try connection.snapshot { try body(connection) } }
    }

    /// Runs a single read statement, which by itself sees one snapshot.
    func readOnce<Result>(_ body: (DiskConnection) throws -> Result) throws(DiskError) -> Result {
        defer { context.deliver() }
        do {
            return try withReader { connection in try connection.perform { try body(connection) } }
        } catch {
            throw DiskError(error)
        }
    }

    private func withReader<Result>(_ body: (DiskConnection) throws -> Result) throws -> Result {
        if context.configuration.isInMemory { return try withOnlyConnection(body) }
        try prepare()
        var isSecond = false
        while true {
            let (generation, idle) = try readers.withLock { state in
                if state.isErased { throw Self.erased }
                return (state.generation, state.idle.popLast())
            }
            var reader = idle
            do {
                let connection = try idle ?? openReader(generation)
                reader = connection
                let result = try body(connection)
                if let damage = connection.damage { throw DiskError(damage) }
                giveBack(connection)
                return result
            } catch {
                guard let cause = replaceableFailure(error, reader) else {
                    if let reader { giveBack(reader) }
                    if let failure = error as? SQLiteError { throw DiskError(failure) }
                    throw error
                }
                guard !isSecond else { throw DiskError(cause) }
                isSecond = try writer.withLock { state in
                    // Otherwise another call has opened the file anew meanwhile.
                    guard state.generation == generation else { return false }
                    try recover(&state, cause, from: reader)
                    return true
                }
            }
        }
    }

    /// Reads a store in memory, also from within a transaction of the calling thread.
    private func withOnlyConnection<Result>(_ body: (DiskConnection) throws -> Result) throws -> Result {
        let own = writing.withLock { writing in
            writing.flatMap { pthread_equal($0.thread, pthread_self()) != 0 ? $0.connection : nil }
        }
        if let own { return try body(own) }
        // Assigned in the closure, because the lock returns sendable values only.
        var result: Result?
        try writer.withLock { state in result = try body(connectedWriter(&state)) }
        guard let result else { throw Self.erased }
        return result
    }

    /// The error that requires another file: damage, or a missing file.
    private func replaceableFailure(_ error: any Error, _ reader: DiskConnection?) -> SQLiteError? {
        if let reader { return reader.damage }
        guard let failure = error as? SQLiteError ?? ((error as? DiskError)?.cause as? SQLiteError) else { return nil }
        return failure.isDamage || failure.code == .cannotOpen ? failure : nil
    }

    private func openReader(_ generation: Int) throws -> DiskConnection {
        // While the lock is held, no other process replaces the file.
        try context.files.locked(context.pathOfLock, isShared: true, makes: false) {
            guard !context.isReplaced else { throw hasVanished }
            let database = try Database(
                .file(context.path),
                context.options(readsOnly: true),
                faults: context.files.faults
            )
            return DiskConnection(database, context, generation: generation)
        }
    }

    private func giveBack(_ connection: DiskConnection) {
        readers.withLock { state in
            if state.generation == connection.generation, !state.isErased, state.idle.count < Self.idleReadersMaximum {
                state.idle.append(connection)
            }
        }
    }
}

import LarderSQLite

/// Disk space that is reserved for sending the outbox: sending needs a write, and without it a disk filled by the outbox would stay
/// full for ever.
///
/// A file of fixed length that is removed when sending finds the disk full, and created again when there is room. While it is
/// missing, nothing is added to the outbox, and while the outbox is not empty, nothing else is stored.
struct DiskReserve {
    private let context: DiskContext
    private let path: String
    private let bytes: Int64

    init(_ context: DiskContext) {
        self.context = context
        path = context.configuration.directory + "/store.reserve"
        bytes = context.configuration.outboxReserveBytes
    }

    /// Whether the reserve exists, or none is configured.
    var isThere: Bool { bytes <= 0 || context.files.size(path) == bytes }

    /// Creates the reserve if needed; false if the disk has no room for it.
    func make() throws(DiskError) -> Bool {
        if isThere { return true }
        do {
            try context.files.allocate(bytes, at: path)
        } catch {
            guard error.code == .full else { throw DiskError(error) }
            return false
        }
        return true
    }

    /// Removes the reserve; false if it does not exist.
    func release() throws(DiskError) -> Bool {
        guard bytes > 0, context.files.exists(path) else { return false }
        do { try context.files.remove(path) } catch { throw DiskError(error) }
        return true
    }

    /// The error if the reserve cannot be created.
    var failure: SQLiteError {
        SQLiteError(
            code: .full,
            message: "there is no room for the \(bytes) bytes that are reserved for sending the outbox"
        )
    }
}

extension DiskStore {
    /// The number of items that are evicted at a time to free disk space.
    private static let givenUpMaximum = 32

    /// Ensures that the next write does not use the reserved space.
    func keepReserve(_ state: inout WriterState) throws {
        let reserve = DiskReserve(context)
        let isNeeded = !state.outbox.rows.isEmpty
        guard isNeeded || state.lacksReserve, !reserve.isThere else { return }
        state.lacksReserve = true
        if try !reserve.make() {
            // The log may have grown without the reserve.
            try checkpointIfPossible(&state)
            try context.configuration.content()?.emptyLogForOutbox()
            if try !reserve.make() { try returnFreePages(&state) }
            guard try reserve.make() else {
                if isNeeded { throw DiskError(reserve.failure) }
                return
            }
        }
        state.lacksReserve = false
    }

    /// Frees space on a full disk for writes that sending needs: removes the reserve, then evicts cached content.
    ///
    /// - Returns: false if nothing is left to remove.
    func makeRoom(_ state: inout WriterState) throws -> Bool {
        do {
            if try DiskReserve(context).release() {
                state.lacksReserve = true
                try checkpointIfPossible(&state)
                return true
            }
            if let content = context.configuration.content() { return try content.evictForOutbox() > 0 }
            let count = try giveUpContent(&state)
            guard count > 0 else { return false }
            context.post(.evicted(count: count))
            try checkpointIfPossible(&state)
            return true
        } catch  where Self.isFull(error) {
            return false
        }
    }

    /// Evicts some items; returns how many. It needs room in the log: if there is none, the log is emptied first.
    func giveUpContent(_ state: inout WriterState) throws -> Int {
        do { return try evictSome(&state) } catch {
            guard Self.isFull(error) else { throw error }
        }
        try checkpointIfPossible(&state)
        return try evictSome(&state)
    }

    private func evictSome(_ state: inout WriterState) throws -> Int {
        try commit(&state, .processDeath) { transaction throws in
            let connection = transaction.connection
            return try connection.perform {
                var count = 0
                while count < Self.givenUpMaximum, try connection.evictOne() { count += 1 }
                return count
            }
        }
    }

    /// Copies the log into the file and truncates it. With active readers or a full disk, the log stays as it is.
    func checkpointIfPossible(_ state: inout WriterState) throws {
        do {
            _ = try connectedWriter(&state).database.checkpoint()
        } catch let error as SQLiteError where [.full, .busy, .locked].contains(error.code) {
            return
        }
    }

    /// Shrinks the file by its free pages, as far as there is room for it.
    private func returnFreePages(_ state: inout WriterState) throws {
        do {
            try connectedWriter(&state).database.releasePages(.max)
        } catch let error as SQLiteError where [.full, .busy, .locked].contains(error.code) {
            return
        }
        try checkpointIfPossible(&state)
    }

    package static func isFull(_ error: any Error) -> Bool {
        (error as? DiskError)?.code == .full || (error as? SQLiteError)?.code == .full
    }
}

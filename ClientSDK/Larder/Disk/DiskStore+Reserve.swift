import LarderSQLite

/// Room on the disk that is kept for sending what waits in the outbox: to send needs a write, and without it a disk that the outbox
/// has filled would stay full for ever.
///
/// A file of a fixed length that is removed when sending finds the disk full, and made again when there is room. While it is missing,
/// nothing is put into the outbox, and while anything waits there, nothing else is stored.
struct DiskReserve {
    private let context: DiskContext
    private let path: String
    private let bytes: Int64

    init(_ context: DiskContext) {
        self.context = context
        path = context.configuration.directory + "/store.reserve"
        bytes = context.configuration.outboxReserveBytes
    }

    /// Whether it is there, or none is wanted.
    var isThere: Bool { bytes <= 0 || context.files.size(path) == bytes }

    /// Makes it if it is not there; false where the disk has no room for it.
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

    /// Gives its room to others; false where there is none to give.
    func release() throws(DiskError) -> Bool {
        guard bytes > 0, context.files.exists(path) else { return false }
        do { try context.files.remove(path) } catch { throw DiskError(error) }
        return true
    }

    /// What is thrown where it cannot be made.
    var failure: SQLiteError {
        SQLiteError(
            code: .full,
            message: "there is no room for the \(bytes) bytes that are kept for sending what waits in the outbox"
        )
    }
}

extension DiskStore {
    /// How many items are given up at a time for want of room.
    private static let givenUpMaximum = 32

    /// Sees to it that what is about to be stored does not use the room that is kept for sending.
    func keepReserve(_ state: inout WriterState) throws {
        let reserve = DiskReserve(context)
        let isNeeded = !state.outbox.rows.isEmpty
        guard isNeeded || state.lacksReserve, !reserve.isThere else { return }
        state.lacksReserve = true
        if try !reserve.make() {
            // The log may have grown while there was no reserve.
            try checkpointIfPossible(&state)
            guard try reserve.make() else {
                if isNeeded { throw DiskError(reserve.failure) }
                return
            }
        }
        state.lacksReserve = false
    }

    /// Makes room on a full disk for what must be written to send what waits: gives up the reserve, and then cached content.
    ///
    /// - Returns: false where nothing is left to be given up.
    func makeRoom(_ state: inout WriterState) throws -> Bool {
        do {
            if try DiskReserve(context).release() {
                state.lacksReserve = true
                try checkpointIfPossible(&state)
                return true
            }
            let count = try giveUpContent(&state)
            guard count > 0 else { return false }
            context.post(.evicted(count: count))
            try checkpointIfPossible(&state)
            return true
        } catch  where Self.isFull(error) {
            return false
        }
    }

    private func giveUpContent(_ state: inout WriterState) throws -> Int {
        try commit(&state, .processDeath) { transaction throws in
            let connection = transaction.connection
            return try connection.perform {
                var count = 0
                while count < Self.givenUpMaximum, try connection.evictOne() { count += 1 }
                return count
            }
        }
    }

    /// Copies the log into the file and empties it. Where readers are in the way or the disk is full, the log stays as it is.
    private func checkpointIfPossible(_ state: inout WriterState) throws {
        do {
            _ = try connectedWriter(&state).database.checkpoint()
        } catch let error as SQLiteError where [.full, .busy, .locked].contains(error.code) {
            return
        }
    }

    static func isFull(_ error: any Error) -> Bool {
        (error as? DiskError)?.code == .full || (error as? SQLiteError)?.code == .full
    }
}

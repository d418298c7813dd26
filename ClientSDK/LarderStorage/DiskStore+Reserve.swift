import LarderSQLite
import Synchronization

/// Disk space that is reserved for sending the outbox: sending needs a write, and without it a disk filled by the outbox would stay
/// full for ever.
///
/// A file of fixed length that is removed when sending or opening finds the disk full, and created again by the next operation that is added. While
/// there is no room for it, nothing is added to the outbox.
struct DiskReserve {
    private let context: DiskContext
    private let path: String
    private let bytes: Int64

    /// - Parameter directory: that of the outbox's store; nil: this is its store.
    init(_ context: DiskContext, in directory: String? = nil) {
        self.context = context
        path = (directory ?? context.configuration.directory) + "/store.reserve"
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
    private static let givenUpMaximum = 8

    /// For the store of an outbox: frees space on a full disk for what sending must store: removes the reserve, then evicts cached
    /// content.
    ///
    /// - Returns: false if nothing is left to remove.
    package func makeRoom() throws(DiskError) -> Bool { try changing { state in try makeRoom(&state) } }

    func makeRoom(_ state: inout WriterState) throws -> Bool {
        let isReleased = try DiskReserve(context).release()
        try checkpointIfPossible(&state)
        return try isReleased || context.configuration.content()?.giveUpContent() ?? false
    }

    /// For the store of an outbox: empties the logs of both stores, and returns the free pages of this one.
    func shrink(_ state: inout WriterState) throws {
        try checkpointIfPossible(&state)
        if let content = context.configuration.content() {
            try content.writer.withLock { state in try content.checkpointIfPossible(&state) }
        }
        do {
            try connectedWriter(&state).database.releasePages(.max)
        } catch let error as SQLiteError where [.full, .busy, .locked].contains(error.code) {
            return
        }
        try checkpointIfPossible(&state)
    }

    /// The events are delivered with those of the outbox, which is locked now.
    private func giveUpContent() throws -> Bool { try writer.withLock { state in try giveUpContent(&state) } }

    /// Evicts some items; false if there is none, or no room to do it. It needs room in the log, which is emptied first if there is none.
    private func giveUpContent(_ state: inout WriterState) throws -> Bool {
        for _ in 0..<2 {
            do {
                let count = try commit(&state, .processDeath) { transaction throws in
                    var count = 0
                    while count < Self.givenUpMaximum, try transaction.evictOne() { count += 1 }
                    return count
                }
                if count > 0 { context.post(.evicted(count: count)) }
                try checkpointIfPossible(&state)
                return count > 0
            } catch  where Self.isFull(error) {
                try checkpointIfPossible(&state)
            }
        }
        return false
    }

    /// Copies the log into the file and truncates it. With active readers or a full disk, the log stays as it is.
    private func checkpointIfPossible(_ state: inout WriterState) throws {
        do {
            _ = try connectedWriter(&state).database.checkpoint()
        } catch let error as SQLiteError where [.full, .busy, .locked].contains(error.code) {
            return
        }
    }

    package static func isFull(_ error: any Error) -> Bool {
        (error as? DiskError)?.code == .full || (error as? SQLiteError)?.code == .full
    }
}

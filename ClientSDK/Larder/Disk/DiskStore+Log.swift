import LarderSQLite
import Synchronization

extension DiskStore {
    /// Copies the log into the database and cuts it to nothing: bytes that were removed are in none of the files after that.
    ///
    /// Waits for readers, in this process and others, at most for `Configuration.busyTimeout`.
    /// - Returns: false where a reader or a writer of another process has kept the log in use for longer.
    func emptyLog() throws(DiskError) -> Bool {
        defer { context.deliver() }
        do {
            return try writer.withLock { state in
                let connection = try connectedWriter(&state)
                return try connection.perform { try connection.database.checkpoint() }
            }
        } catch {
            throw DiskError(error)
        }
    }
}

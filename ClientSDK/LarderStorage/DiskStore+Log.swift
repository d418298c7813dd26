import LarderSQLite
import Synchronization

extension DiskStore {
    /// Copies the log into the database and truncates it: afterwards removed bytes are in none of the files.
    ///
    /// Waits for readers of all processes, at most for `Configuration.busyTimeout`.
    /// - Returns: false if another process has kept the log in use for longer.
    package func emptyLog() throws(DiskError) -> Bool {
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

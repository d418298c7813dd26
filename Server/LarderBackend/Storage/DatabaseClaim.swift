import Glibc
import LarderTime
import Synchronization

/// A database that another process serves.
package struct DatabaseInUse: Error, CustomStringConvertible {
    package let path: String

    package var description: String { "\(path) is served by another process. Stop that one, or name another file." }
}

/// The exclusive right to serve a database file.
///
/// SQLite itself would let several processes write. But a server answers from memory and would miss the commits of another
/// process. Reading beside a server, as `--check` does, needs no claim.
///
/// A lock on a separate file beside the database: releasing a lock on the database itself would release SQLite's. The kernel
/// releases it when the process ends. Safe from any thread.
package final class DatabaseClaim: Sendable {
    private let descriptor: Mutex<Int32>

    /// - Throws: `DatabaseInUse`. If the lock file cannot be created, SQLite reports the error later.
    package init(_ path: String) throws(DatabaseInUse) {
        let opened = unsafe open(path + "-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        descriptor = Mutex(opened)
        guard opened >= 0 else { return }
        // Other error numbers mean that the file system has no locks, so nothing can be excluded.
        guard !FileLock.take(opened), errno == EWOULDBLOCK else { return }
        release()
        throw DatabaseInUse(path: path)
    }

    deinit { release() }

    /// Releases the claim; further calls have no effect.
    package func release() {
        descriptor.withLock { descriptor in
            if descriptor >= 0 { FileLock.giveBack(descriptor) }
            descriptor = -1
        }
    }
}

import LarderSQLite
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Why a database cannot be served.
struct DatabaseInUse: Error, CustomStringConvertible {
    let path: String

    var description: String { "\(path) is served by another process. Stop that one, or name another file." }
}

/// The right to serve a database file, which one process has at a time.
///
/// SQLite would let several in. But a server answers from memory what it knows to be the last commit, and would not hear of
/// the commits of another. Reading beside it, as `--check` does, takes no right.
///
/// A lock on a file of its own, beside the database: one on the database itself would take SQLite's with it when it is given
/// back. The kernel gives it back with the process, however that ends. Safe from any thread.
final class DatabaseClaim: Sendable {
    private let descriptor: Mutex<Int32>

    /// - Throws: `DatabaseInUse`. A directory that takes no file is left for SQLite to complain of.
    init(_ path: String) throws(DatabaseInUse) {
        let opened = unsafe open(path + "-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        descriptor = Mutex(opened)
        guard opened >= 0 else { return }
        // A file system without locks refuses with another number; there, nobody can be kept from anything.
        guard !FileLock.take(opened), errno == EWOULDBLOCK else { return }
        release()
        throw DatabaseInUse(path: path)
    }

    deinit { release() }

    /// Gives the right back; harmless when that was done before.
    func release() {
        descriptor.withLock { descriptor in
            if descriptor >= 0 { FileLock.giveBack(descriptor) }
            descriptor = -1
        }
    }
}

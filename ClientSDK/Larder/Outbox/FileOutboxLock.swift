import LarderSQLite
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// An outbox's lock as a locked file (`flock`), which the kernel lets go when the process dies, however it does.
///
/// The file is 0600 and empty, and stays when the lock is let go. Two locks of one path exclude each other within a process too.
public final class FileOutboxLock: OutboxLock {
    private let path: String
    private let descriptor = Mutex<Int32?>(nil)

    /// A lock of a file, which is made when it is first taken.
    public init(path: String) { self.path = path }

    deinit { release() }

    /// Takes it, unless another process or another lock of that path has it.
    ///
    /// - Throws: `.storage` where the file cannot be made or locked.
    public func take() throws -> Bool {
        try descriptor.withLock { held in
            if held != nil { return true }
            // Who erases a store removes the file: a lock of what has no name any more excludes nobody.
            for _ in 0..<8 {
                let file = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
                guard file >= 0 else { throw failure("opened") }
                if !FileLock.take(file) {
                    let isTaken = errno == EWOULDBLOCK
                    let error = failure("locked")
                    close(file)
                    guard isTaken else { throw error }
                    return false
                }
                if isNamed(file) {
                    held = file
                    return true
                }
                FileLock.giveBack(file)
            }
            throw LarderError(.storage, "\(path) is replaced again and again; nothing can be sent meanwhile.")
        }
    }

    /// Lets it go.
    public func release() {
        descriptor.withLock { held in
            if let file = held.take() { FileLock.giveBack(file) }
        }
    }

    /// Whether the open file is the one that has the name.
    private func isNamed(_ file: Int32) -> Bool {
        var (mine, named) = (stat(), stat())
        guard unsafe fstat(file, &mine) == 0, unsafe lstat(path, &named) == 0 else { return false }
        return mine.st_ino == named.st_ino && mine.st_dev == named.st_dev
    }

    private func failure(_ what: String) -> LarderError {
        let reason = unsafe String(cString: strerror(errno))
        return LarderError(.storage, "\(path) could not be \(what): \(reason). What waits is sent when it can be.")
    }
}

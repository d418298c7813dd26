import Glibc
import LarderTime
import Synchronization

/// A process lock on a file (`flock`), which the kernel releases when the process ends, also by a crash.
///
/// The file has mode 0600, is empty, and stays after the release. Two locks of one path also exclude each other within a process.
package final class FileProcessLock: ProcessLock {
    private let path: String
    private let descriptor = Mutex<Int32?>(nil)

    /// Creates a lock; its file is created on the first `take`.
    package init(path: String) { self.path = path }

    deinit { release() }

    /// Acquires the lock unless another process or another lock of the path holds it.
    ///
    /// - Throws: `DiskError` if the file cannot be created or locked.
    package func take() throws -> Bool {
        try descriptor.withLock { held in
            if held != nil { return true }
            // Erasing a store removes the file: a lock on an unlinked file excludes nobody.
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
                if FileLock.isNamed(file, path) {
                    held = file
                    return true
                }
                FileLock.giveBack(file)
            }
            throw DiskError(.busy, "\(path) was replaced eight times while it was being locked. Try again.")
        }
    }

    package func release() {
        descriptor.withLock { held in
            if let file = held.take() { FileLock.giveBack(file) }
        }
    }

    private func failure(_ what: String) -> DiskError {
        let reason = unsafe String(cString: strerror(errno))
        return DiskError(
            .cannotOpen,
            "\(path) could not be \(what): \(reason). Check the permissions of its directory."
        )
    }
}

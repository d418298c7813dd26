import Glibc

/// Locks of open files (flock(2)): the kernel releases them when the process ends.
package enum FileLock {
    /// Locks an open file.
    ///
    /// - Parameters:
    ///   - isShared: whether the lock may be shared.
    ///   - waits: whether the thread blocks until the lock is free.
    /// - Returns: false if the lock is not available; `errno` has the reason: EWOULDBLOCK if another process holds it.
    package static func take(_ descriptor: Int32, isShared: Bool = false, waits: Bool = false) -> Bool {
        let operation = (isShared ? LOCK_SH : LOCK_EX) | (waits ? 0 : LOCK_NB)
        while flock(descriptor, operation) != 0 { guard errno == EINTR else { return false } }
        return true
    }

    /// Releases the lock of an open file, if it was acquired, and closes the file.
    ///
    /// Unlocked explicitly: a child process forked meanwhile inherits the descriptor until it executes its program, and with it
    /// the lock.
    package static func giveBack(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Whether an open file still has a name. While it is open, no other file gets its number.
    package static func isNamed(_ descriptor: Int32, _ path: String) -> Bool {
        var (mine, named) = (stat(), stat())
        guard unsafe fstat(descriptor, &mine) == 0, unsafe lstat(path, &named) == 0 else { return false }
        return mine.st_ino == named.st_ino && mine.st_dev == named.st_dev
    }
}

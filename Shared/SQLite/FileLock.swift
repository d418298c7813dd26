#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Locks of open files (flock(2)): the kernel gives them back with the process, however that ends.
package enum FileLock {
    /// Takes the lock of an open file.
    ///
    /// - Parameters:
    ///   - isShared: whether others may have it too that share it.
    ///   - waits: whether the thread is held until nobody else has it.
    /// - Returns: false where it was not to be had, and `errno` says why: EWOULDBLOCK where somebody else has it.
    package static func take(_ descriptor: Int32, isShared: Bool = false, waits: Bool = false) -> Bool {
        let operation = (isShared ? LOCK_SH : LOCK_EX) | (waits ? 0 : LOCK_NB)
        while flock(descriptor, operation) != 0 { guard errno == EINTR else { return false } }
        return true
    }

    /// Gives the lock of an open file back, if it was taken, and closes the file.
    ///
    /// Unlocked first: a child that is forked meanwhile has the descriptor too until it begins its program, and with it the lock.
    package static func giveBack(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}

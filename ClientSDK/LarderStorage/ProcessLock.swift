/// Lets one process at a time do something, where several share a store: an application and its extensions.
///
/// The outbox sends, and a session renews its tokens, while it holds such a lock. The lock is advisory: idempotency keys and the
/// server's rules protect the data. Called from any thread, one call at a time.
package protocol ProcessLock: Sendable {
    /// Acquires the lock unless another owner holds it. Never waits.
    ///
    /// - Returns: whether the lock is held now.
    /// - Throws: when the state of the lock is unknown. The caller does nothing then, and asks again later.
    func take() throws -> Bool

    /// Releases the lock; does nothing if it is not held.
    func release()
}

import Synchronization

/// The idempotency keys of requests whose reply is not sent, each with its user and route. Safe from any thread.
///
/// A second request with such a key is rejected, or waits if the dialect says so: its client has given up on the first reply
/// and must learn that the first attempt is still running. That a key has one effect does not depend on it (`Idempotency`).
final class KeysInFlight: Sendable {
    private let keys = Mutex<[String: [@Sendable () -> Void]]>([:])

    /// Acquires a key; returns false if it is in use.
    ///
    /// - Parameter waiter: called when the key is released, if it was in use.
    func begin(_ key: String, orWait waiter: (@Sendable () -> Void)?) -> Bool {
        keys.withLock { keys in
            if keys[key] != nil {
                if let waiter { keys[key]?.append(waiter) }
                return false
            }
            keys[key] = []
            return true
        }
    }

    func end(_ key: String) {
        let waiters = keys.withLock { $0.removeValue(forKey: key) ?? [] }
        for waiter in waiters { waiter() }
    }
}

import Synchronization

/// The idempotency keys of requests that are being carried out at this moment. Safe from any thread.
///
/// A second request with such a key is told so, or waits where the dialect says that: its client has given up on the first
/// reply and must learn that the first try is still alive.
final class KeysInFlight: Sendable {
    struct Key: Hashable, Sendable {
        let user: Int64
        let route: String
        let key: String
    }

    private let keys = Mutex<[Key: [@Sendable () -> Void]]>([:])

    /// Takes a key; returns false when somebody has it already.
    ///
    /// - Parameter waiter: called once the key is free again, if it was not now.
    func begin(_ key: Key, orWait waiter: (@Sendable () -> Void)? = nil) -> Bool {
        keys.withLock { keys in
            if keys[key] != nil {
                if let waiter { keys[key]?.append(waiter) }
                return false
            }
            keys[key] = []
            return true
        }
    }

    func end(_ key: Key) {
        let waiters = keys.withLock { $0.removeValue(forKey: key) ?? [] }
        for waiter in waiters { waiter() }
    }
}

import Synchronization

/// The idempotency keys of requests in flight. Safe from any thread.
///
/// A second request with such a key is rejected, or waits if the dialect says so: its client has given up on the first reply
/// and must learn that the first attempt is still running.
package final class KeysInFlight: Sendable {
    package struct Key: Hashable, Sendable {
        package let user: Int64
        package let route: String
        package let key: String

        package init(user: Int64, route: String, key: String) {
            self.user = user
            self.route = route
            self.key = key
        }
    }

    private let keys = Mutex<[Key: [@Sendable () -> Void]]>([:])

    /// Acquires a key; returns false if it is in use.
    ///
    /// - Parameter waiter: called when the key is released, if it was in use.
    package func begin(_ key: Key, orWait waiter: (@Sendable () -> Void)? = nil) -> Bool {
        keys.withLock { keys in
            if keys[key] != nil {
                if let waiter { keys[key]?.append(waiter) }
                return false
            }
            keys[key] = []
            return true
        }
    }

    package func end(_ key: Key) {
        let waiters = keys.withLock { $0.removeValue(forKey: key) ?? [] }
        for waiter in waiters { waiter() }
    }
}

import Synchronization

/// The idempotency keys of requests that are being carried out at this moment.
///
/// A second request with such a key is told to wait instead of being queued behind the first: its client has given up on the
/// first reply and must learn that the first try is still alive.
final class KeysInFlight: Sendable {
    private struct Key: Hashable {
        let user: Int64
        let route: String
        let key: String
    }

    private let keys = Mutex<Set<Key>>([])

    /// Returns false when that key is already being worked on.
    func begin(user: Int64, route: String, key: String) -> Bool {
        keys.withLock { $0.insert(Key(user: user, route: route, key: key)).inserted }
    }

    func end(user: Int64, route: String, key: String) {
        _ = keys.withLock { $0.remove(Key(user: user, route: route, key: key)) }
    }
}

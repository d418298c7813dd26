import Synchronization

/// The right of an exchange to store what it brings. It ends when something happens that the response may not know of.
final class HTTPCacheTicket: Sendable {
    /// The key that the response would be stored under.
    let key: String
    private let state = Mutex(true)

    init(_ key: String) { self.key = key }

    /// Whether what the exchange brings may be stored still.
    var isValid: Bool { state.withLock { $0 } }

    /// Ends the right.
    func revoke() { state.withLock { $0 = false } }
}

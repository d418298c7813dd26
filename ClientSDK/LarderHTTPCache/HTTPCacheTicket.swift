import Synchronization

/// The permission of an exchange to store its response. It is revoked by a change that the response may not include.
final class HTTPCacheTicket: Sendable {
    /// The key of the response.
    let key: String
    private let state = Mutex(true)

    init(_ key: String) { self.key = key }

    /// Whether the response may still be stored.
    var isValid: Bool { state.withLock { $0 } }

    /// Revokes the permission.
    func revoke() { state.withLock { $0 = false } }
}

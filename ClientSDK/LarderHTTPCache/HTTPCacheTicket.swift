import Synchronization

/// The permission of an exchange to store its response. It is revoked by a change that the response may not include.
final class HTTPCacheTicket: Sendable {
    /// The key of the response.
    let key: String
    private let state = Mutex(true)
    private let condition: (@Sendable () -> Bool)?

    /// - Parameter condition: what must hold besides when the response is stored.
    init(_ key: String, _ condition: (@Sendable () -> Bool)?) {
        self.key = key
        self.condition = condition
    }

    /// Whether no change has revoked it.
    var isValid: Bool { state.withLock { $0 } }

    /// Whether the response may still be stored.
    var mayStore: Bool { isValid && condition?() != false }

    /// Revokes the permission.
    func revoke() { state.withLock { $0 = false } }
}

import Synchronization

/// Tells what the system says of its network. Safe from any thread.
public protocol NetworkStatusSource: Sendable {
    /// The present state.
    var status: NetworkStatus { get }

    /// Calls `body` with every new state until the registration is released; from any thread, one call at a time.
    func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration
}

/// A source that is set by hand: for tests, and for platforms that tell by other ways.
public final class ManualNetworkSource: NetworkStatusSource {
    private let state: Mutex<NetworkStatus>
    private let observers = OrderedObservers<NetworkStatus>()

    /// A source that says `status` until it is set.
    public init(_ status: NetworkStatus = .assumed) { state = Mutex(status) }

    /// The state that was set last.
    public var status: NetworkStatus { state.withLock { $0 } }

    /// Sets the state; observers have been told when this returns, unless another call is telling them.
    public func set(_ status: NetworkStatus) {
        let isNew = state.withLock { state in
            defer { state = status }
            return state != status
        }
        if isNew { observers.tell(status) }
    }

    /// Sets whether there is a network.
    public func set(isConnected: Bool) { set(NetworkStatus(isConnected: isConnected)) }

    /// Calls `body` with every state that is set.
    public func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration {
        observers.add(body)
    }
}

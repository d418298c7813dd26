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
    private let observers = StatusObservers<NetworkStatus>()

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

/// Observers that are told of values in the order in which they came, one at a time, and under no lock.
final class StatusObservers<Value: Sendable>: Sendable {
    private struct State {
        var observers: [UInt64: @Sendable (Value) -> Void] = [:]
        var lastID: UInt64 = 0
        var pending: [Value] = []
        var isTelling = false
    }

    private let state = Mutex(State())

    func add(_ body: @escaping @Sendable (Value) -> Void) -> EventRegistration {
        let id = state.withLock { state in
            state.lastID += 1
            state.observers[state.lastID] = body
            return state.lastID
        }
        return EventRegistration { [weak self] in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: id) }
        }
    }

    /// Tells of a value; where another thread is telling, that one goes on with this value.
    func tell(_ value: Value) {
        let isMine = state.withLock { state in
            state.pending.append(value)
            defer { state.isTelling = true }
            return !state.isTelling
        }
        guard isMine else { return }
        while true {
            let next = state.withLock { state -> (Value, [@Sendable (Value) -> Void])? in
                guard !state.pending.isEmpty else {
                    state.isTelling = false
                    return nil
                }
                return (state.pending.removeFirst(), Array(state.observers.values))
            }
            guard let next else { return }
            for observer in next.1 { observer(next.0) }
        }
    }
}

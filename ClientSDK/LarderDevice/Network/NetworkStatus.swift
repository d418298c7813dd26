/// The network state reported by the system, before any request was sent.
public struct NetworkStatus: Sendable, Hashable {
    /// Whether other machines are reachable at all.
    public var isConnected: Bool
    /// Whether traffic is expensive or limited.
    public var isMetered: Bool
    /// The interfaces; empty if the source does not know them.
    public var interfaces: [Interface]

    /// Creates a network status.
    public init(isConnected: Bool, isMetered: Bool = false, interfaces: [Interface] = []) {
        self.isConnected = isConnected
        self.isMetered = isMetered
        self.interfaces = interfaces
    }

    /// Connected if one of the interfaces is usable.
    public init(interfaces: [Interface]) {
        self.init(isConnected: interfaces.contains(where: \.isUsable), interfaces: interfaces)
    }

    /// The state before anything is known: connected.
    public static let assumed = NetworkStatus(isConnected: true)
}

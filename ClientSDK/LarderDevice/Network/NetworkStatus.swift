/// The network state reported by the system, before any request was sent.
package struct NetworkStatus: Sendable, Hashable {
    /// Whether other machines are reachable at all.
    package var isConnected: Bool
    /// Whether traffic is expensive or limited.
    package var isMetered: Bool
    /// The interfaces; empty if the source does not know them.
    package var interfaces: [Interface]

    package init(isConnected: Bool, isMetered: Bool = false, interfaces: [Interface] = []) {
        self.isConnected = isConnected
        self.isMetered = isMetered
        self.interfaces = interfaces
    }

    /// Connected if one of the interfaces is usable.
    package init(interfaces: [Interface]) {
        self.init(isConnected: interfaces.contains(where: \.isUsable), interfaces: interfaces)
    }

    /// The state before anything is known: connected.
    package static let assumed = NetworkStatus(isConnected: true)
}

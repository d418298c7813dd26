/// What the system says of its network, before any request was sent.
public struct NetworkStatus: Sendable, Hashable {
    /// Whether there is a way to other machines at all.
    public var isConnected: Bool
    /// Whether traffic costs money or is to be spared (Apple: expensive or constrained paths).
    public var isMetered: Bool
    /// The interfaces, where the source knows them, ordered by number.
    public var interfaces: [NetworkInterface]

    /// What the system says.
    public init(isConnected: Bool, isMetered: Bool = false, interfaces: [NetworkInterface] = []) {
        self.isConnected = isConnected
        self.isMetered = isMetered
        self.interfaces = interfaces
    }

    /// Connected where one of the interfaces is usable.
    public init(interfaces: [NetworkInterface]) {
        self.init(isConnected: interfaces.contains(where: \.isUsable), interfaces: interfaces)
    }

    /// A network of which nothing is known.
    public static let assumed = NetworkStatus(isConnected: true)
}

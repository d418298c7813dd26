extension NetworkStatus {
    /// A network interface.
    public struct Interface: Sendable, Hashable {
        /// An address of an interface.
        public struct Address: Sendable, Hashable {
            /// The protocol.
            public enum Family: String, Sendable, Hashable {
                /// IPv4.
                case ipv4
                /// IPv6.
                case ipv6
            }

            /// The protocol.
            public let family: Family
            /// The bytes in network order: 4 or 16.
            public let bytes: [UInt8]

            /// Nil if the number of bytes is wrong.
            public init?(_ family: Family, bytes: [UInt8]) {
                guard bytes.count == (family == .ipv4 ? 4 : 16) else { return nil }
                self.family = family
                self.bytes = bytes
            }

            /// Whether it is routable beyond this link: not 127/8, 169.254/16, ::1 or fe80::/10.
            public var isRoutable: Bool {
                switch family {
                case .ipv4: return bytes[0] != 127 && bytes[0] != 0 && !(bytes[0] == 169 && bytes[1] == 254)
                case .ipv6:
                    let isLinkLocal = bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
                    let isLoopbackOrNone = bytes[0..<15].allSatisfy { $0 == 0 } && bytes[15] < 2
                    return !isLinkLocal && !isLoopbackOrNone
                }
            }
        }

        /// The system's number of the interface.
        public var index: Int
        /// The name: `eth0`, `wlan0`.
        public var name: String
        /// Whether it is enabled.
        public var isUp: Bool
        /// Whether there is a link: a cable, an access point.
        public var isRunning: Bool
        /// Whether it is a loopback interface.
        public var isLoopback: Bool
        /// Its addresses.
        public var addresses: Set<Address>

        /// Creates an interface.
        public init(
            index: Int,
            name: String,
            isUp: Bool,
            isRunning: Bool,
            isLoopback: Bool = false,
            addresses: Set<Address> = []
        ) {
            self.index = index
            self.name = name
            self.isUp = isUp
            self.isRunning = isRunning
            self.isLoopback = isLoopback
            self.addresses = addresses
        }

        /// Whether it can carry requests to other machines. A default route is not asked for: the server may be in the interface's own
        /// network, such as a local network without a router or a bridge of containers.
        public var isUsable: Bool { isUp && isRunning && !isLoopback && addresses.contains(where: \.isRoutable) }
    }
}

extension NetworkStatus {
    package struct Interface: Sendable, Hashable {
        /// The name: `eth0`, `wlan0`.
        package var name: String
        /// Whether it is enabled and has a link: a cable, an access point.
        package var isUp: Bool
        package var isLoopback: Bool
        /// Its addresses: 4 bytes of IPv4 or 16 of IPv6, in network order.
        package var addresses: Set<[UInt8]>

        package init(name: String, isUp: Bool, isLoopback: Bool = false, addresses: Set<[UInt8]> = []) {
            self.name = name
            self.isUp = isUp
            self.isLoopback = isLoopback
            self.addresses = addresses
        }

        /// Whether it can carry requests to other machines. A default route is not asked for: the server may be in the interface's own
        /// network, such as a local network without a router or a bridge of containers.
        package var isUsable: Bool { isUp && !isLoopback && addresses.contains(where: Self.isRoutable) }

        /// Whether an address is routable beyond its link: not 0/8, 127/8, 169.254/16, ::, ::1 or fe80::/10.
        private static func isRoutable(_ bytes: [UInt8]) -> Bool {
            if bytes.count == 4 { return bytes[0] != 127 && bytes[0] != 0 && !(bytes[0] == 169 && bytes[1] == 254) }
            guard bytes.count == 16 else { return false }
            let isLinkLocal = bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
            let isLoopbackOrNone = bytes[0..<15].allSatisfy { $0 == 0 } && bytes[15] < 2
            return !isLinkLocal && !isLoopbackOrNone
        }
    }
}

import Glibc
import LarderTLS

/// The names and addresses by which this machine can be reached.
enum LocalHosts {
    /// `localhost`, the loopback addresses, the address of the host in an Android emulator, the machine's name, and the addresses of its
    /// interfaces.
    static func all() -> [String] {
        var hosts = ["localhost", "127.0.0.1", "::1", "10.0.2.2"]
        hosts += names
        for address in interfaceAddresses() where !hosts.contains(address) { hosts.append(address) }
        return hosts
    }

    /// The machine's name, in the DNS and in multicast DNS.
    static var names: [String] {
        guard let name = machineName()?.lowercased() else { return [] }
        return [name, "\(name).local"]
    }

    private static func machineName() -> String? {
        var name = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&name, name.count - 1) == 0 else { return nil }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return TLSAuthority.canIssue(for: text) ? text : nil
    }

    private static func interfaceAddresses() -> [String] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { return [] }
        defer { unsafe freeifaddrs(list) }
        var found: [String] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let text = unsafe entry.pointee.ifa_addr.flatMap({ unsafe text($0) }) { found.append(text) }
            unsafe next = unsafe entry.pointee.ifa_next
        }
        return found
    }

    /// The address as text; nil for other families, and for addresses that need an interface (`fe80::…%eth0`).
    private static func text(_ address: UnsafeMutablePointer<sockaddr>) -> String? {
        let family = Int32(unsafe address.pointee.sa_family)
        guard family == AF_INET || family == AF_INET6 else { return nil }
        let size = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
        var text = [CChar](repeating: 0, count: 128)
        guard unsafe getnameinfo(address, socklen_t(size), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
        else { return nil }
        let shown = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return shown.contains("%") ? nil : shown
    }
}

import Glibc
import LarderEvents
import LarderTime
import Synchronization

/// The network state of Linux: interfaces and addresses by getifaddrs(3), read again when rtnetlink(7) reports a change.
///
/// Needs no privileges. One thread waits in the kernel; nothing is polled.
final class NetlinkSource: NetworkMonitor.Source {
    /// Why the system's network state cannot be observed.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ action: String, _ code: Int32) {
            let reason = unsafe String(cString: strerror(code))
            description = "\(action): \(reason). Use NetworkMonitor.setOverride; requests are measured in any case."
        }
    }

    // Numbers of linux/netlink.h and rtnetlink.h, which Swift's Glibc module does not have.
    private static let family: Int32 = 16  // AF_NETLINK
    private static let rawSocket: Int32 = 3 | 0o2_000_000 | 0o4_000  // SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK
    private static let groups: UInt32 = 0x1 | 0x10 | 0x100  // RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR

    private let shared: Shared
    private let thread: PollThread

    /// What the thread shares with the source, which it does not keep.
    private final class Shared: Sendable {
        let status: Mutex<NetworkStatus>
        let observers = OrderedObservers<NetworkStatus>()

        init(_ status: NetworkStatus) { self.status = Mutex(status) }

        /// Reads the interfaces again. A failure leaves the last state.
        func update() {
            guard let interfaces = NetlinkSource.interfaces() else { return }
            let new = NetworkStatus(interfaces: interfaces)
            let isNew = status.withLock { status in
                defer { status = new }
                return status != new
            }
            if isNew { observers.tell(new) }
        }
    }

    /// Opens the socket and reads the interfaces.
    ///
    /// - Throws: if the kernel or a sandbox refuses. `NetworkMonitor.setOverride` says it then.
    init() throws(Failure) {
        let socket = socket(Self.family, Self.rawSocket, 0)
        guard socket >= 0 else { throw Failure("A netlink socket", errno) }
        var isOpen = true
        defer { if isOpen { close(socket) } }
        // struct sockaddr_nl: family, padding, port (the kernel chooses), groups.
        var address = [UInt32](repeating: 0, count: 3)
        address[0] = UInt32(UInt16(Self.family)).littleEndian
        address[2] = Self.groups
        let bound = unsafe address.withUnsafeBytes { raw in
            unsafe raw.withMemoryRebound(to: sockaddr.self) { unsafe bind(socket, $0.baseAddress, 12) }
        }
        guard bound == 0 else { throw Failure("Binding a netlink socket", errno) }
        // Read after the socket is bound, so that no change is missed.
        guard let interfaces = Self.interfaces() else { throw Failure("Reading the interfaces", errno) }
        let shared = Shared(NetworkStatus(interfaces: interfaces))
        isOpen = false
        let descriptor = PollThread.Descriptor(number: socket, events: Int16(POLLIN))
        let thread = PollThread("larder-network", [descriptor], timeout: -1) { _ in
            Self.drain(socket)
            shared.update()
            return -1
        }
        guard let thread else { throw Failure("A thread for netlink", EMFILE) }
        self.shared = shared
        self.thread = thread
    }

    /// The current state.
    var status: NetworkStatus { shared.status.withLock { $0 } }

    /// Calls `body` with each new state, on the source's own thread.
    func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration {
        shared.observers.add(body)
    }

    /// Discards the reports: they say that something has changed, also if some of them were lost (`ENOBUFS`).
    private static func drain(_ socket: Int32) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = unsafe recv(socket, &buffer, buffer.count, 0)
            guard count >= 0 || errno == EINTR || errno == ENOBUFS else { return }
        }
    }

    /// The interfaces of this machine in the system's order; nil if they cannot be read.
    private static func interfaces() -> [NetworkStatus.Interface]? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { return nil }
        defer { unsafe freeifaddrs(list) }
        var interfaces: [NetworkStatus.Interface] = []
        var next = unsafe list
        while let entry = unsafe next {
            let info = unsafe entry.pointee
            unsafe next = info.ifa_next
            let name = unsafe String(cString: info.ifa_name)
            // Each interface has several entries: one for itself, and one for each address.
            let index = interfaces.firstIndex { $0.name == name } ?? interfaces.count
            if index == interfaces.count {
                let flags = unsafe info.ifa_flags
                interfaces.append(
                    NetworkStatus.Interface(
                        name: name,
                        isUp: flags & 0x41 == 0x41,  // IFF_UP, IFF_RUNNING
                        isLoopback: flags & 0x8 != 0  // IFF_LOOPBACK
                    )
                )
            }
            if let bytes = unsafe info.ifa_addr.flatMap({ unsafe Self.bytes($0) }) {
                interfaces[index].addresses.insert(bytes)
            }
        }
        return interfaces
    }

    /// The bytes of an IPv4 or IPv6 address, which follow family and port, and of IPv6 the flow; nil for another family.
    private static func bytes(_ address: UnsafeMutablePointer<sockaddr>) -> [UInt8]? {
        let raw = UnsafeRawPointer(address)
        switch unsafe Int32(address.pointee.sa_family) {
        case AF_INET: return unsafe Array(UnsafeRawBufferPointer(start: raw + 4, count: 4))
        case AF_INET6: return unsafe Array(UnsafeRawBufferPointer(start: raw + 8, count: 16))
        default: return nil
        }
    }
}

import Glibc
import LarderEvents
import Synchronization

/// The network state of Linux: interfaces and addresses by rtnetlink(7).
///
/// Needs no privileges. One thread waits in the kernel; nothing is polled.
final class NetlinkSource: NetworkMonitor.Source {
    private final class Shared: Sendable {
        /// A network is assumed until the kernel has answered.
        let status = Mutex(NetworkStatus(isConnected: true))
        let session = Mutex(NetlinkSession())
        let observers = OrderedObservers<NetworkStatus>()

        /// Carries out the session's action; returns the error number if it cannot go on.
        func perform(_ actions: [NetlinkSession.Action], _ socket: Int32) -> Int32? {
            for action in actions {
                switch action {
                case .send(let bytes):
                    guard unsafe Glibc.send(socket, bytes, bytes.count, 0) == bytes.count else { return errno }
                case .publish(let interfaces):
                    let status = NetworkStatus(interfaces: interfaces)
                    self.status.withLock { $0 = status }
                    observers.tell(status)
                case .giveUp(let code): return code
                }
            }
            return nil
        }

        /// Receives one datagram.
        ///
        /// - Returns: nil if more may follow; otherwise the error number, `EAGAIN` if nothing is available now.
        func receive(_ socket: Int32, flags: Int32) -> Int32? {
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            let count = unsafe recv(socket, &buffer, buffer.count, flags)
            // Read before another call changes it.
            let code = count < 0 ? errno : 0
            if code == EINTR { return nil }
            // Messages were lost: everything is requested again.
            if code == ENOBUFS { return perform(session.withLock { $0.start() }, socket) }
            guard count > 0 else { return code }
            let datagram = Array(buffer[..<count])
            return perform(session.withLock { $0.received(datagram) }, socket)
        }
    }

    private let shared = Shared()
    private let thread: PollThread

    /// Opens the socket and reads the lists as far as the kernel has them ready, which it usually has. Never blocks: missing
    /// entries arrive as changes, and until then a network is assumed.
    ///
    /// - Throws: if the kernel or a sandbox refuses. Use a `NetworkMonitor.ManualSource` then.
    init() throws(NetworkSourceError) {
        // SOCK_RAW | SOCK_CLOEXEC and NETLINK_ROUTE, which Swift's Glibc module does not have.
        let socket = socket(NetlinkMessage.family, 3 | 0o2_000_000, 0)
        guard socket >= 0 else { throw NetworkSourceError("A netlink socket", errno) }
        var isOpen = true
        defer { if isOpen { close(socket) } }
        // struct sockaddr_nl: family, padding, port (the kernel chooses), groups.
        var address = [UInt32](repeating: 0, count: 3)
        address[0] = UInt32(UInt16(NetlinkMessage.family)).littleEndian
        address[2] = NetlinkMessage.groups
        let bound = unsafe address.withUnsafeBytes { raw in
            unsafe raw.withMemoryRebound(to: sockaddr.self) { unsafe bind(socket, $0.baseAddress, 12) }
        }
        guard bound == 0 else { throw NetworkSourceError("Binding a netlink socket", errno) }
        let told = Mutex(false)
        let first = shared.observers.add { _ in told.withLock { $0 = true } }
        if let code = shared.perform(shared.session.withLock { $0.start() }, socket) {
            throw NetworkSourceError("Asking netlink for the interfaces", code)
        }
        while !told.withLock({ $0 }) {
            guard let code = shared.receive(socket, flags: Int32(MSG_DONTWAIT)) else { continue }
            if code == EAGAIN || code == EWOULDBLOCK { break }
            throw NetworkSourceError("Reading the interfaces from netlink", code)
        }
        _ = first
        let shared = shared
        isOpen = false
        let descriptor = PollThread.Descriptor(number: socket, events: Int16(POLLIN))
        let thread = PollThread("larder-network", [descriptor], timeout: -1) { _ in
            while shared.receive(socket, flags: Int32(MSG_DONTWAIT)) == nil {}
            return -1
        }
        guard let thread else { throw NetworkSourceError("A thread for netlink", EMFILE) }
        self.thread = thread
    }

    /// The current state.
    var status: NetworkStatus { shared.status.withLock { $0 } }

    /// Calls `body` with each new state, on the source's own thread.
    func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration {
        shared.observers.add(body)
    }
}

import Glibc
package import LarderTime
import Synchronization

/// Makes the client's sessions of one `TLSSettings`, and keeps what is needed to resume them.
///
/// Safe from any thread.
package final class TLSClient: Sendable {
    let settings: TLSSettings
    let context: TLSContext
    private let tickets = Mutex(TicketStore())

    /// Reads roots, pins and the identity. Files and the system's roots are read before it returns, which takes up to 100 milliseconds;
    /// sessions read none.
    ///
    /// - Parameter maximumVersion: for tests with older peers.
    /// - Throws: `.unavailable`, `.invalidSettings`.
    package init(_ settings: TLSSettings, maximumVersion: Int? = nil) throws(TLSError) {
        self.settings = settings
        for pin in settings.pinnedKeyHashes where pin.count != 32 {
            throw TLSError(
                .invalidSettings,
                "A pin has \(pin.count) bytes. It must be the SHA-256 of a public key: 32 bytes."
            )
        }
        context = try TLSContext(isClient: true)
        let library = context.library
        if settings.requiresTLS13 { context.set(minimum: TLSContext.Version.tls13) }
        if let maximumVersion { context.set(maximum: maximumVersion) }
        if let identity = settings.identity {
            try context.use(TLSIdentity(chain: identity.chain, key: identity.key, from: "the client's identity"))
        }
        unsafe library.setVerify(context.handle, TLSContext.Verification.peer, judgeCertificate)
        if !settings.insecurelyAcceptsAnyCertificate {
            if settings.roots.isSystemTrusted { context.trust(SystemRoots.certificates) }
            for source in settings.roots.sources { context.trust(try Self.certificates(source)) }
        }
        let offered: [UInt8] = [8] + Array("http/1.1".utf8)
        _ = unsafe library.offerProtocols(context.handle, offered, UInt32(offered.count))
        if settings.resumesSessions {
            let mode = TLSContext.SessionCache.client | TLSContext.SessionCache.noInternalStore
            _ = unsafe library.controlContext(context.handle, TLSContext.Control.setSessionCacheMode, mode, nil)
            unsafe library.setNewSession(context.handle, keepTicket)
        }
    }

    /// Begins a session with a server.
    ///
    /// - Parameters:
    ///   - host: the name or the IP address (without brackets) that the certificate must have.
    ///   - port: with the host, it is what a session is resumed for.
    ///   - now: the time at which certificates must be valid.
    package func session(host: String, port: Int, now: WallTime) throws(TLSError) -> TLSSession {
        let session = try TLSSession(self, peer: "\(host):\(port)")
        try session.expect(host, now)
        if let ticket = tickets.withLock({ $0.take(session.peer) }) { session.resume(ticket) }
        return session
    }

    func keep(_ ticket: TLSTicket, for peer: String) { tickets.withLock { $0.put(ticket, peer) } }

    private static func certificates(_ source: TLSSettings.Roots.Source) throws(TLSError) -> [Certificate] {
        switch source {
        case .bytes(let bytes): try Certificate.read(bytes, from: "The text of trusted certificates")
        case .file(let path): try Certificate.read(readFile(path), from: "'\(path)'")
        }
    }
}

extension TLSClient: Hashable {
    /// By identity: sessions are resumed only by the client that made them.
    package static func == (left: TLSClient, right: TLSClient) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// What a session is resumed with (a session ticket or a session ID of TLS 1.2).
///
/// `@unchecked Sendable`: it is a copy that no connection has (`SSL_SESSION_dup`). `TicketStore` hands it out once, under the lock of its
/// client, to the one connection that resumes it; nothing changes it meanwhile, and OpenSSL counts its references atomically.
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe final class TLSTicket: @unchecked Sendable {
    let handle: OpaquePointer
    private let library: OpenSSL

    init(owning handle: OpaquePointer, _ library: OpenSSL) {
        unsafe self.handle = handle
        self.library = library
    }

    deinit { unsafe library.freeSession(handle) }
}

/// Tickets by peer. A ticket is used once, so that connections cannot be linked by it (RFC 8446 appendix C.4).
private struct TicketStore {
    private static let peersMaximum = 64
    private static let ticketsPerPeer = 4
    private var tickets: [String: [TLSTicket]] = [:]
    /// The peers, the one that got a ticket last at the end.
    private var order: [String] = []

    mutating func put(_ ticket: TLSTicket, _ peer: String) {
        order.removeAll { $0 == peer }
        order.append(peer)
        tickets[peer, default: []].append(ticket)
        if tickets[peer, default: []].count > Self.ticketsPerPeer { tickets[peer]?.removeFirst() }
        if order.count > Self.peersMaximum { tickets[order.removeFirst()] = nil }
    }

    /// The newest ticket, which is removed.
    mutating func take(_ peer: String) -> TLSTicket? { tickets[peer]?.popLast() }
}

/// Hands over a ticket that the server has issued. Returns 0: the reference stays with OpenSSL.
private let keepTicket: OpenSSL.NewSession = { ssl, ticket in
    if let ticket = unsafe ticket { unsafe TLSSession.of(ssl)?.received(ticket) }
    return 0
}

/// Reads a file of certificates or keys.
///
/// - Throws: `.invalidSettings` if it cannot be read, or has more than 4 MiB.
package func readFile(_ path: String) throws(TLSError) -> [UInt8] {
    let maximum = 4 << 20
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
        throw TLSError(.invalidSettings, "'\(path)' cannot be read: \(unsafe String(cString: strerror(errno))).")
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count <= maximum {
        let count = unsafe read(descriptor, &buffer, buffer.count)
        if count == 0 { return bytes }
        if count < 0 {
            if errno == EINTR { continue }
            throw TLSError(.invalidSettings, "'\(path)' cannot be read: \(unsafe String(cString: strerror(errno))).")
        }
        bytes += buffer[..<count]
    }
    throw TLSError(
        .invalidSettings,
        "'\(path)' has more than \(maximum >> 20) MiB. It must contain certificates or a key."
    )
}

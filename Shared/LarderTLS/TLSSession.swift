import LarderTime

/// One side of a TLS connection, without I/O: a filter between encrypted and plain bytes.
///
/// The owner gives what the socket has received to `receive` and sends what `takeOutput` returns after every call. Plain bytes may be
/// sent once `isEstablished`. An error ends the session; its output may contain an alert that should still be sent.
///
/// Not safe for concurrent use: its owner keeps it inside a `Mutex` or on one thread.
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe package final class TLSSession {
    /// The bytes that may wait for the peer when it sends more: messages that make this side answer (RFC 8446 §4.6.3) would fill memory
    /// if the peer reads nothing.
    private static let outputBytesMaximum = 256 << 10

    let handle: OpaquePointer
    private let library: OpenSSL
    /// The bytes from the peer, and those for it. Owned by `handle`.
    private let input: OpaquePointer
    private let output: OpaquePointer
    private let client: TLSClient?
    /// Chooses the certificate that is shown; nil on a client's side.
    private let identity: (@Sendable (_ host: String?) -> TLSIdentity?)?
    /// The host and port of the server; empty on the server's side.
    let peer: String
    private var host = ""
    private var hasReceived = false
    private var failure: TLSError?
    private var rejection: TLSError?
    /// Whether the server's chain has a pinned key, or no pin is set.
    private var isPinned: Bool
    /// The tickets of a handshake that is not complete: it may still fail.
    private var heldTickets: [TLSTicket] = []

    /// Whether the handshake is complete, so that plain bytes may be sent.
    package private(set) var isEstablished = false
    /// Whether the peer has ended its side in order (`close_notify`).
    package private(set) var isEndedByPeer = false

    convenience init(_ client: TLSClient, peer: String) throws(TLSError) {
        try self.init(context: client.context, client: client, identity: nil, peer: peer)
    }

    convenience init(
        _ server: TLSServer,
        identity: @escaping @Sendable (_ host: String?) -> TLSIdentity?
    ) throws(TLSError) {
        try self.init(context: server.context, client: nil, identity: identity, peer: "")
    }

    private init(
        context: TLSContext,
        client: TLSClient?,
        identity: (@Sendable (_ host: String?) -> TLSIdentity?)?,
        peer: String
    ) throws(TLSError) {
        library = context.library
        self.client = client
        self.identity = identity
        self.peer = peer
        isPinned = client?.settings.pinnedKeyHashes.isEmpty ?? true
        library.clearErrors()
        let bios = unsafe (library.newBIO(library.memoryBIO()), library.newBIO(library.memoryBIO()))
        guard let handle = unsafe library.new(context.handle), let input = unsafe bios.0, let output = unsafe bios.1
        else {
            throw TLSError(.unavailable, "OpenSSL made no session: \(library.takeReason() ?? "no reason given").")
        }
        unsafe self.handle = handle
        unsafe self.input = input
        unsafe self.output = output
        unsafe library.setBIOs(handle, input, output)
        _ = unsafe library.setData(handle, 0, Unmanaged.passUnretained(self).toOpaque())
        if client != nil { unsafe library.becomeClient(handle) } else { unsafe library.becomeServer(handle) }
    }

    deinit { unsafe library.free(handle) }

    // MARK: Bytes

    /// Begins the handshake: a client's first message becomes output. Call it once, before anything is received.
    package func start() throws(TLSError) {
        var none: [UInt8] = []
        try advance(&none)
    }

    /// Takes bytes from the peer, and appends what they contain to `plain`.
    ///
    /// - Throws: why the session has ended. What was decrypted before it is in `plain`.
    package func receive(_ bytes: Span<UInt8>, into plain: inout [UInt8]) throws(TLSError) {
        if let failure { throw failure }
        guard !bytes.isEmpty, !isEndedByPeer else { return }
        if !hasReceived {
            hasReceived = true
            if let foreign = foreignPeer(bytes) { throw fail(foreign) }
        }
        let taken = unsafe bytes.withUnsafeBytes { unsafe library.writeBIO(input, $0.baseAddress, Int32($0.count)) }
        guard taken == bytes.count else {
            throw fail(TLSError(.damaged, "OpenSSL took \(taken) of \(bytes.count) bytes."))
        }
        try advance(&plain)
        guard unsafe library.pendingInBIO(output) <= Self.outputBytesMaximum else {
            throw fail(TLSError(.damaged, "The peer reads no answers, and sends TLS messages that need one."))
        }
    }

    /// Encrypts bytes. They become output.
    ///
    /// Precondition: the handshake is complete.
    package func send(_ bytes: Span<UInt8>) throws(TLSError) {
        precondition(isEstablished, "Plain bytes are sent after the handshake only.")
        if let failure { throw failure }
        guard !bytes.isEmpty else { return }
        library.clearErrors()
        let count = unsafe bytes.withUnsafeBytes { unsafe library.write(handle, $0.baseAddress, Int32($0.count)) }
        guard count == bytes.count else { throw fail(explained(unsafe library.errorKind(handle, count))) }
    }

    /// Ends the own side in order. The `close_notify` alert becomes output.
    package func end() {
        guard failure == nil, isEstablished else { return }
        library.clearErrors()
        _ = unsafe library.shutDown(handle)
        library.clearErrors()
    }

    /// Takes the bytes that must be sent to the peer.
    package func takeOutput() -> [UInt8] { unsafe library.drain(output) }

    /// Whether there are bytes that must be sent to the peer.
    package var hasOutput: Bool { unsafe library.pendingInBIO(output) > 0 }

    /// The error of a connection that has ended now; nil if the peer had ended it in order.
    package var errorAtEnd: TLSError? {
        if isEndedByPeer { return nil }
        if let failure { return failure }
        let place =
            isEstablished ? "without the end of its TLS session: data may be missing" : "during the TLS handshake"
        return TLSError(
            .truncated,
            "The peer closed the connection \(place). Try again; if it persists, look at the peer's log."
        )
    }

    private func advance(_ plain: inout [UInt8]) throws(TLSError) {
        library.clearErrors()
        if !isEstablished {
            let result = unsafe library.shakeHands(handle)
            guard result == 1 else {
                let kind = unsafe library.errorKind(handle, result)
                if kind == Kind.wantsRead { return }
                throw fail(explained(kind))
            }
            guard isPinned || isResumed else {
                throw fail(TLSError(.certificateNotPinned, "The pins of '\(host)' were not compared."))
            }
            isEstablished = true
            for ticket in heldTickets { client?.keep(ticket, for: peer) }
            heldTickets = []
        }
        try decrypt(&plain)
    }

    private func decrypt(_ plain: inout [UInt8]) throws(TLSError) {
        // As large as a record.
        let error: TLSError? = unsafe withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 16) { buffer in
            while true {
                let count = unsafe library.read(handle, buffer.baseAddress, Int32(buffer.count))
                if count > 0 {
                    unsafe plain.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
                    continue
                }
                let kind = unsafe library.errorKind(handle, count)
                switch kind {
                case Kind.wantsRead: return nil
                case Kind.ended:
                    isEndedByPeer = true
                    return nil
                default: return explained(kind)
                }
            }
        }
        if let error { throw fail(error) }
    }

    private func fail(_ error: TLSError) -> TLSError {
        failure = failure ?? error
        library.clearErrors()
        return error
    }

    /// Results of `SSL_get_error`.
    private enum Kind {
        static let wantsRead: Int32 = 2
        static let ended: Int32 = 6
    }

    // MARK: About the session

    /// Whether an earlier session was resumed.
    package var isResumed: Bool { unsafe library.wasResumed(handle) == 1 }

    /// The host that the client has named; nil on the client's side, or if it has named none.
    package var requestedHost: String? {
        guard identity != nil else { return nil }
        return unsafe library.serverName(handle, 0).map { unsafe String(cString: $0) }
    }

    private func certificates(_ stack: OpaquePointer?) -> [Certificate] {
        guard let stack = unsafe stack else { return [] }
        return (0..<max(0, unsafe library.stackCount(stack))).compactMap { index in
            unsafe library.stackElement(stack, index).map { unsafe Certificate(sharing: $0, library) }
        }
    }

    // MARK: For the contexts

    /// The session that owns a handle.
    static func of(_ ssl: OpaquePointer?) -> TLSSession? {
        guard let ssl = unsafe ssl, let library = try? OpenSSL.required(), let raw = unsafe library.data(ssl, 0) else {
            return nil
        }
        // The session is alive: OpenSSL calls back only within the session's own calls.
        return unsafe Unmanaged<TLSSession>.fromOpaque(raw).takeUnretainedValue()
    }

    /// Sets the host that the server's certificate must have.
    func expect(_ host: String, _ now: WallTime) throws(TLSError) {
        self.host = host
        let parameters = unsafe library.verification(handle)
        unsafe library.setVerificationTime(parameters, Int(now.seconds))
        _ = unsafe library.setVerificationFlags(parameters, TLSContext.Verification.trustsPartialChains)
        // An address is no name (RFC 6066 §3): it is not sent. OpenSSL 1.1.1 takes names that begin like one for addresses.
        if isAddress(host) {
            guard unsafe library.setExpectedAddress(parameters, host) == 1 else { throw Self.invalidHost(host) }
            return
        }
        unsafe library.setHostFlags(
            parameters,
            TLSContext.Verification.noPartialWildcards | TLSContext.Verification.ignoresSubject
        )
        // The DNS does not distinguish a trailing dot here, and certificates have none.
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        var isSet = unsafe !name.isEmpty && library.setExpectedHost(parameters, name, name.utf8.count) == 1
        if isSet {
            var bytes = Array(name.utf8CString)
            isSet = unsafe library.control(handle, TLSContext.Control.setServerName, 0, &bytes) == 1
        }
        guard isSet else { throw Self.invalidHost(host) }
    }

    private static func invalidHost(_ host: String) -> TLSError {
        TLSError(.invalidSettings, "'\(host)' cannot be the host of a certificate. Use a host name or an IP address.")
    }

    func resume(_ ticket: TLSTicket) { _ = unsafe library.setSession(handle, ticket.handle) }

    /// Copies a ticket. It is kept once the session is established: the handshake may still fail.
    func received(_ ticket: OpaquePointer) {
        guard unsafe library.isResumable(ticket) == 1, let copy = unsafe library.copySession(ticket) else { return }
        let ticket = unsafe TLSTicket(owning: copy, library)
        if isEstablished { client?.keep(ticket, for: peer) } else { heldTickets.append(ticket) }
    }

    func showIdentity() -> Bool {
        guard let identity = identity?(requestedHost) else { return false }
        var isShown = unsafe library.useCertificate(handle, identity.certificate.handle) == 1
        for authority in identity.chain.dropFirst() where isShown {
            let raw = unsafe UnsafeMutableRawPointer(authority.handle)
            isShown = unsafe library.control(handle, TLSContext.Control.addToChain, 1, raw) == 1
        }
        return unsafe isShown && library.useKey(handle, identity.key.handle) == 1
    }

    func rejected(_ certificate: Certificate?, _ code: Int32) {
        let text = unsafe library.verificationText(Int(code)).map { unsafe String(cString: $0) } ?? "error \(code)"
        let whose = client == nil ? "The client's certificate" : "The certificate of '\(host)'"
        rejection = rejection ?? TLSError(rejecting: certificate, code, text, whose, host)
    }

    /// Whether flaws of the server's chain do not matter.
    var acceptsAnyCertificate: Bool { client?.settings.insecurelyAcceptsAnyCertificate ?? false }

    /// Compares the pins with the server's chain: in the handshake, before the client's certificate is sent.
    func acceptsPins(of chain: OpaquePointer?) -> Bool {
        guard let pins = client?.settings.pinnedKeyHashes, !isPinned else { return true }
        // Without verification anybody can add a certificate of somebody else to the chain.
        let chain = unsafe certificates(chain).prefix(acceptsAnyCertificate ? 1 : .max)
        isPinned = chain.contains { pins.contains($0.publicKeyHash) }
        guard !isPinned else { return true }
        let shown = chain.map { "'\($0.subject)'" }.joined(separator: ", ")
        rejection = TLSError(
            .certificateNotPinned,
            "No certificate of '\(host)' has a pinned public key: \(shown). Another server answers, or its keys have changed: update "
                + "pinnedKeyHashes."
        )
        return false
    }

    // MARK: Explanations

    private func explained(_ kind: Int32) -> TLSError {
        let reason = library.takeReason()
        if let rejection { return rejection }
        guard let reason else {
            return TLSError(.damaged, "OpenSSL gave no reason for the end of the TLS session (\(kind)).")
        }
        if reason.contains(" alert ") { return TLSError(alert: reason, isClient: client != nil) }
        if client != nil, reason == "peer did not return a certificate" {
            return TLSError(.certificateInvalid, "'\(host)' has shown no certificate.")
        }
        if isEstablished {
            return TLSError(.damaged, "The TLS session cannot be continued: \(reason). Try again on a new connection.")
        }
        return TLSError(handshake: reason, isClient: client != nil)
    }

    /// Why the first bytes are not those of TLS; nil if they may be.
    private func foreignPeer(_ bytes: Span<UInt8>) -> TLSError? {
        // A handshake record or an alert.
        if bytes[0] == 0x16 || bytes[0] == 0x15 { return nil }
        var shown: [UInt8] = []
        for index in 0..<min(bytes.count, 24) {
            guard (0x20...0x7E).contains(bytes[index]) else { break }
            shown.append(bytes[index])
        }
        let text = shown.count >= 4 ? "'\(String(decoding: shown, as: UTF8.self))'" : "byte \(bytes[0])"
        return TLSError(
            .notTLS,
            client == nil
                ? "The client does not speak TLS; it sent \(text). Use an https URL."
                : "The server does not speak TLS; it sent \(text). Use an http URL, or the server's port for https."
        )
    }
}

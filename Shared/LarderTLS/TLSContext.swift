import Glibc

/// A context of OpenSSL: the settings that sessions share.
///
/// `@unchecked Sendable`: the context is not changed once its owner's `init` has returned, and OpenSSL may make sessions from it on any
/// thread.
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe final class TLSContext: @unchecked Sendable {
    let handle: OpaquePointer
    let library: OpenSSL

    /// - Parameter isClient: whether its sessions begin handshakes.
    init(isClient: Bool) throws(TLSError) {
        library = try OpenSSL.required()
        library.clearErrors()
        guard let handle = unsafe library.newContext(isClient ? library.clientMethod() : library.serverMethod()) else {
            throw TLSError(.unavailable, "OpenSSL made no context: \(library.takeReason() ?? "no reason given").")
        }
        unsafe self.handle = handle
        // Renegotiation in TLS 1.2 lets a peer ask for expensive work again and again.
        _ = unsafe library.setOptions(handle, Option.noRenegotiation | Option.noCompression)
        // Buffers of idle connections are freed.
        _ = unsafe library.controlContext(handle, Control.mode, Mode.releaseBuffers, nil)
        set(minimum: Version.tls12)
    }

    deinit { unsafe library.freeContext(handle) }

    func set(minimum version: Int) {
        _ = unsafe library.controlContext(handle, Control.setMinimumVersion, version, nil)
    }

    func set(maximum version: Int) {
        _ = unsafe library.controlContext(handle, Control.setMaximumVersion, version, nil)
    }

    func trust(_ certificates: [Certificate]) {
        let store = unsafe library.rootsOfContext(handle)
        for certificate in certificates { _ = unsafe library.addToStore(store, certificate.handle) }
    }

    /// Sets the certificate of all sessions.
    func use(_ identity: TLSIdentity) throws(TLSError) {
        var isUsed = unsafe library.useCertificateInContext(handle, identity.certificate.handle) == 1
        for authority in identity.chain.dropFirst() where isUsed {
            let raw = unsafe UnsafeMutableRawPointer(authority.handle)
            isUsed = unsafe library.controlContext(handle, Control.addToChain, 1, raw) == 1
        }
        if isUsed { isUsed = unsafe library.useKeyInContext(handle, identity.key.handle) == 1 }
        guard isUsed else {
            let reason = library.takeReason() ?? "no reason given"
            throw TLSError(
                .invalidSettings,
                "OpenSSL does not accept the certificate '\(identity.certificate.subject)': \(reason)."
            )
        }
    }

    enum Version {
        static let tls12 = 0x0303
        static let tls13 = 0x0304
    }

    enum Option {
        static let noTicket: UInt64 = 1 << 14
        static let noCompression: UInt64 = 1 << 17
        static let noRenegotiation: UInt64 = 1 << 30
    }

    enum Mode { static let releaseBuffers = 0x10 }

    /// Commands of `SSL_ctrl` and `SSL_CTX_ctrl`.
    enum Control {
        static let mode: Int32 = 33
        static let setSessionCacheMode: Int32 = 44
        static let setServerName: Int32 = 55
        static let addToChain: Int32 = 89
        static let setMinimumVersion: Int32 = 123
        static let setMaximumVersion: Int32 = 124
    }

    enum SessionCache {
        static let off = 0
        static let client = 1
        static let noInternalStore = 0x300
    }

    enum Verification {
        static let peer: Int32 = 1
        static let requiresCertificate: Int32 = 2
        static let trustsPartialChains: UInt = 0x80000
        static let noPartialWildcards: UInt32 = 4
        static let ignoresSubject: UInt32 = 0x20
    }
}

/// Judges the peer's certificates. Called by OpenSSL for each flaw of a chain, and for each accepted certificate, for the peer's own last.
let judgeCertificate: OpenSSL.Verify = { isAccepted, store in
    // The library is loaded, because it calls. Without it nothing would be accepted.
    guard let library = try? OpenSSL.required() else { return 0 }
    let ssl = unsafe library.verificationData(store, library.verificationDataIndex()).map { OpaquePointer($0) }
    guard let session = unsafe TLSSession.of(ssl) else { return 0 }
    if isAccepted == 1 {
        let isOwn = unsafe library.verificationDepth(store) == 0
        return unsafe !isOwn || session.acceptsPins(of: library.verificationChain(store)) ? 1 : 0
    }
    if session.acceptsAnyCertificate { return 1 }
    let certificate = unsafe library.verificationCertificate(store).map { unsafe Certificate(sharing: $0, library) }
    unsafe session.rejected(certificate, library.verificationError(store))
    return 0
}

/// Whether a host is an IPv4 or IPv6 address.
func isAddress(_ host: String) -> Bool {
    var address = in6_addr()
    return unsafe inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
}

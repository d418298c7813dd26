/// Makes the server's sessions of one set of certificates.
///
/// Safe from any thread.
package final class TLSServer: Sendable {
    let context: TLSContext
    /// The certificate for the host that a client asks for; nil: the client has named none (RFC 6066 §3).
    let identity: @Sendable (_ host: String?) -> TLSIdentity?

    /// - Parameters:
    ///   - resumesSessions: whether clients may resume sessions. A resumed session shows no certificate.
    ///   - clientRoots: if it is not empty, clients must show a certificate that one of these authorities has signed.
    ///   - identity: the certificate for a host, or without one; nil rejects the client. Called on the thread that calls the session.
    ///   - maximumVersion: for tests of older peers.
    /// - Throws: `.unavailable`.
    package init(
        resumesSessions: Bool = true,
        clientRoots: [Certificate] = [],
        maximumVersion: Int? = nil,
        identity: @escaping @Sendable (_ host: String?) -> TLSIdentity?
    ) throws(TLSError) {
        self.identity = identity
        context = try TLSContext(isClient: false)
        let library = context.library
        if let maximumVersion { context.set(maximum: maximumVersion) }
        unsafe library.setCertificateChoice(context.handle, chooseCertificate, nil)
        unsafe library.setProtocolChoice(context.handle, chooseProtocol, nil)
        let name = Array("larder".utf8)
        _ = unsafe library.setSessionContext(context.handle, name, UInt32(name.count))
        if !resumesSessions {
            _ = unsafe library.setOptions(context.handle, TLSContext.Option.noTicket)
            let off = TLSContext.SessionCache.off
            _ = unsafe library.controlContext(context.handle, TLSContext.Control.setSessionCacheMode, off, nil)
        }
        guard !clientRoots.isEmpty else { return }
        context.trust(clientRoots)
        let mode = TLSContext.Verification.peer | TLSContext.Verification.requiresCertificate
        unsafe library.setVerify(context.handle, mode, judgeCertificate)
    }

    /// Begins a session with a client that has connected.
    ///
    /// - Parameter identity: chooses its certificate instead of the server's `identity`.
    package func session(
        identity: (@Sendable (_ host: String?) -> TLSIdentity?)? = nil
    ) throws(TLSError) -> TLSSession { try TLSSession(self, identity: identity ?? self.identity) }
}

/// Sets the certificate for the host that the client has asked for.
private let chooseCertificate: OpenSSL.ChooseCertificate = { ssl, _ in
    guard let session = unsafe TLSSession.of(ssl) else { return 0 }
    return session.showIdentity() ? 1 : 0
}

/// Takes HTTP/1.1 if the client offers protocols (RFC 7301 §3.2): a client that speaks only others is rejected.
private let chooseProtocol: OpenSSL.ChooseProtocol = { _, chosen, chosenCount, offered, count, _ in
    let wanted = Array("http/1.1".utf8)
    let bytes = unsafe UnsafeBufferPointer(start: offered, count: Int(count))
    var index = 0
    while index < bytes.count {
        let length = Int(unsafe bytes[index])
        let end = index + 1 + length
        guard end <= bytes.count else { break }
        if length == wanted.count, unsafe bytes[(index + 1)..<end].elementsEqual(wanted) {
            unsafe chosen?.pointee = unsafe offered.map { unsafe $0 + index + 1 }
            unsafe chosenCount?.pointee = UInt8(length)
            return 0
        }
        index = end
    }
    // SSL_TLSEXT_ERR_ALERT_FATAL
    return 2
}

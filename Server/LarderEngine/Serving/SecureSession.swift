package import LarderTLS

/// A session that begins with a client, and what goes wrong with its handshake.
package struct SecureSession {
    /// Makes one for a client that has connected.
    package typealias Beginning = @Sendable (_ peer: SocketAddress) throws(TLSError) -> SecureSession

    package let session: TLSSession
    /// Called once, with the host that the client has named, before the server's first bytes are sent.
    package let fault: (@Sendable (_ host: String?) -> HandshakeFault?)?

    package init(_ session: TLSSession, fault: (@Sendable (_ host: String?) -> HandshakeFault?)? = nil) {
        self.session = session
        self.fault = fault
    }
}

/// What goes wrong with a handshake besides its certificate, for tests of clients.
package struct HandshakeFault: Sendable, Hashable {
    /// How the handshake ends after the server's first `byteCount` bytes; nil: it is completed.
    package var ending: ExchangeEnding?
    package var byteCount = 0
    /// Whether the connection is closed without `close_notify` (RFC 8446 §6.1).
    package var omitsCloseNotify = false

    package init() {}
}

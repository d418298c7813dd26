import LarderTLS

/// TLS on the port of the server: a connection whose first byte begins a handshake is encrypted, any other is not.
extension Connection {
    /// Whether received bytes are encrypted. Begins the session with the first bytes of a connection.
    func beginsTLS(_ bytes: Span<UInt8>) -> Bool {
        guard !hasBegun else { return output.tls != nil }
        hasBegun = true
        guard let tls = loop.configuration.tls, bytes[0] == Self.handshakeRecord else { return false }
        // A failure means that the system has no memory for a session.
        do throws(TLSError) { output.tls = try TLSFilter(tls().session()) } catch { close() }
        return true
    }

    /// The type of a record with a handshake message (RFC 8446 §5.1): no method of HTTP begins with it.
    private static var handshakeRecord: UInt8 { 22 }

    func decrypt(_ bytes: Span<UInt8>) {
        guard !isClosed else { return }
        var plain: [UInt8] = []
        var failure: TLSError?
        do throws(TLSError) { try output.tls?.receive(bytes, into: &plain) } catch { failure = error }
        // Messages of the handshake, and alerts. They do not extend the deadline of a peer that sends no request.
        if output.tls?.hasOutput == true {
            noteWriting()
            afterWriting(output.flush(to: descriptor))
            setInterest()
        }
        if !plain.isEmpty, !isClosed { take(plain.span) }
        guard !isClosed else { return }
        if failure != nil { return close() }
        if output.tls?.isEndedByPeer == true, !hasPeerEnded { peerEnded() }
    }

    /// Tells a peer with TLS that nothing more is sent (`close_notify`).
    func endTLS() { output.tls?.end { SystemCall.send(descriptor, $0, from: $1) } }
}

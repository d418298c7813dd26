import LarderHTTP
import LarderTLS

/// TLS on the port of the server: a connection whose first byte begins a handshake is encrypted, any other is not.
extension Connection {
    /// Begins the session if the first byte of the connection says so; false if there cannot be one.
    func begin(with first: UInt8) -> Bool {
        hasBegun = true
        guard first == Self.handshakeRecord else { return true }
        guard let begin = loop.configuration.tls else {
            reject(Rejection(.badRequest, "The client speaks TLS, and this port speaks http only. Use an http URL."))
            return false
        }
        do throws(TLSError) {
            let secure = try begin(peer)
            output.tls = try TLSFilter(secure.session)
            handshakeFault = secure.fault
        } catch {
            // The system has no memory for a session.
            close()
        }
        return !isClosed
    }

    /// The type of a record with a handshake message (RFC 8446 §5.1): no method of HTTP begins with it.
    private static var handshakeRecord: UInt8 { 22 }

    func decrypt(_ bytes: [UInt8]) {
        var plain: [UInt8] = []
        var failure: TLSError?
        do throws(TLSError) { try output.tls?.receive(bytes.span, into: &plain) } catch { failure = error }
        if output.tls?.hasOutput == true {
            if failure == nil, let decide = handshakeFault.take(), let fault = decide(output.tls?.requestedHost) {
                apply(fault)
            }
            // Messages of the handshake, and alerts.
            flush(extendsDeadline: false)
        }
        if !plain.isEmpty, !isClosed { take(plain) }
        guard !isClosed else { return }
        if failure != nil {
            // Replies that are marked for the end of the turn leave first.
            flush()
            return close()
        }
        if output.tls?.isEndedByPeer == true, !hasPeerEnded { peerEnded() }
    }

    /// A handshake that ends early becomes the plain bytes of its beginning.
    private func apply(_ fault: HandshakeFault) {
        omitsCloseNotify = fault.omitsCloseNotify
        guard let ending = fault.ending else { return }
        let beginning = output.tls?.takeOutput().prefix(fault.byteCount) ?? []
        output.tls = nil
        output.append(Array(beginning))
        mode = .stalled
        updateDeadline()
        closesAfterOutput = ending != .silence
        resetsAfterOutput = ending == .reset
    }

    /// Tells a peer with TLS that nothing more is sent (`close_notify`).
    func endTLS() {
        guard !omitsCloseNotify else { return }
        output.tls?.end { SystemCall.send(descriptor, $0, from: $1) }
    }
}

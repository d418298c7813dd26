import LarderEngine
import LarderTLS
import Synchronization

extension ControlPlane {
    /// Begins a TLS session with a client. The faults of `main` decide what goes wrong.
    func beginTLS(_ certificates: CertificateSource, with peer: SocketAddress) throws(TLSError) -> SecureSession {
        let world = worlds.main
        guard world.control.faults.hasHandshakeFaults else {
            return SecureSession(try certificates.server.session { certificates.identity($0, nil) })
        }
        let decision = HandshakeDecision { host in
            world.control.faults.decide(handshakeFor: host, of: peer.host, now: world.clock.uptime)
        }
        // A resumed session shows no certificate, and so no fault.
        let session = try certificates.serverWithoutResumption.session { host in
            certificates.identity(host, decision.certificateFault(host))
        }
        return SecureSession(session) { decision.fault($0) }
    }
}

/// What goes wrong with the handshake of one connection: decided once, when the client has named its host. Asked on the loop of the
/// connection only, so that nobody else decides meanwhile.
private final class HandshakeDecision: Sendable {
    private let decide: @Sendable (_ host: String?) -> [FaultDecision]
    private let known = Mutex<Handshake?>(nil)

    init(_ decide: @escaping @Sendable (_ host: String?) -> [FaultDecision]) { self.decide = decide }

    private func handshake(_ host: String?) -> Handshake {
        if let known = known.withLock({ $0 }) { return known }
        var handshake = Handshake()
        for fault in decide(host).map(\.fault) { fault.action.effect.change(&handshake, at: fault.at) }
        let decided = handshake
        known.withLock { $0 = decided }
        return decided
    }

    /// What is wrong with the certificate: the first fault decides.
    func certificateFault(_ host: String?) -> CertificateFault? { handshake(host).certificate }

    /// What else goes wrong; nil if nothing does.
    func fault(_ host: String?) -> HandshakeFault? {
        let fault = handshake(host).fault
        return fault == HandshakeFault() ? nil : fault
    }
}

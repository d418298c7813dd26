import LarderBackend
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

/// What goes wrong with the handshake of one connection: decided once, when the client has named its host. Safe from any thread.
private final class HandshakeDecision: Sendable {
    private let decide: @Sendable (_ host: String?) -> [FaultDecision]
    private let known = Mutex<[Fault]?>(nil)

    init(_ decide: @escaping @Sendable (_ host: String?) -> [FaultDecision]) { self.decide = decide }

    private func faults(_ host: String?) -> [Fault] {
        known.withLock { known in
            if let known { return known }
            let faults = decide(host).map(\.fault)
            known = faults
            return faults
        }
    }

    /// What is wrong with the certificate: the first fault decides.
    func certificateFault(_ host: String?) -> CertificateFault? {
        faults(host).lazy.compactMap { if case .certificate(let wrong) = $0.action { wrong.fault } else { nil } }.first
    }

    /// What else goes wrong; nil if nothing does.
    func fault(_ host: String?) -> HandshakeFault? {
        var result = HandshakeFault()
        for fault in faults(host) {
            switch fault.action {
            case .noCloseNotify: result.omitsCloseNotify = true
            case .never where result.ending == nil: (result.ending, result.byteCount) = (.stall, fault.at)
            case .close where result.ending == nil: (result.ending, result.byteCount) = (.close, fault.at)
            case .reset where result.ending == nil: (result.ending, result.byteCount) = (.reset, fault.at)
            default: break
            }
        }
        return result == HandshakeFault() ? nil : result
    }
}

import LarderTLS
import LarderTime
import Synchronization

/// The TLS servers of one backend: one that shows correct certificates, and while a fault is set one that shows wrong ones.
///
/// The hosts `expired.localhost` and the like (`CertificateFault.host`) always have a wrong one, for clients that cannot change the server.
/// Certificates are valid by the system's clock, not by those of worlds, because clients judge them by theirs. Safe from any thread.
final class CertificateSource: Sendable {
    private struct State {
        var fault: CertificateFault?
        /// By requested host; empty without one.
        var issued: [String: TLSIdentity] = [:]
    }

    /// The authority that signs; nil for certificates from files.
    let authority: TLSAuthority?
    private let fixed: TLSIdentity?
    private let hosts: [String]
    private let state: Mutex<State>
    /// Both are set once, by `init`.
    private let servers = Mutex<(sound: TLSServer, faulty: TLSServer)?>(nil)

    private static let issuedMaximum = 256

    /// - Parameter hosts: the names and addresses of the certificate for clients that name no host: those that connect to an address.
    /// - Throws: `TLSError` without OpenSSL, or for files that cannot be used.
    init(_ certificates: ServerCertificates, hosts: [String] = LocalHosts.all()) throws(TLSError) {
        let now = SystemWallClock().now
        switch certificates {
        case .temporary:
            authority = try TLSAuthority(name: "Larder Temporary Authority", now: now)
            fixed = nil
        case .development(let directory):
            authority = try AuthorityDirectory(directory).authority(now: now)
            fixed = nil
        case .files(let certificate, let key):
            authority = nil
            fixed = try TLSIdentity(
                chain: readFile(certificate),
                key: readFile(key),
                from: "'\(certificate)' with '\(key)'"
            )
        }
        self.hosts = hosts
        state = Mutex(State())
        let sound = try TLSServer { [weak self] host in self?.identity(host) }
        // A resumed session shows no certificate, and so no fault.
        let faulty = try TLSServer(resumesSessions: false) { [weak self] host in self?.identity(host) }
        servers.withLock { $0 = (sound, faulty) }
    }

    /// The server for a new connection.
    var current: TLSServer {
        let isFaulty = fault != nil
        guard let servers = servers.withLock({ $0 }) else {
            preconditionFailure("The servers are set by the initialiser.")
        }
        return isFaulty ? servers.faulty : servers.sound
    }

    /// What is wrong with the certificates of new connections; nil for correct ones. It has no effect without an authority.
    var fault: CertificateFault? {
        get { state.withLock { $0.fault } }
        set {
            state.withLock { state in
                guard state.fault != newValue else { return }
                state.fault = newValue
                state.issued = [:]
            }
        }
    }

    private func identity(_ host: String?) -> TLSIdentity? {
        if let fixed { return fixed }
        let name = host?.lowercased() ?? ""
        let names = name.isEmpty || hosts.contains(name) ? hosts : [name]
        let key = names == hosts ? "" : name
        let (known, fault) = state.withLock { ($0.issued[key], $0.fault) }
        if let known { return known }
        // A host that cannot be in a certificate is rejected: it comes from the client.
        let shown = fault ?? CertificateFault.allCases.first { $0.host == name }
        guard let made = try? authority?.issue(hosts: names, now: SystemWallClock().now, fault: shown) else {
            return nil
        }
        state.withLock { state in
            guard state.fault == fault else { return }
            if state.issued.count >= Self.issuedMaximum { state.issued = [:] }
            state.issued[key] = made
        }
        return made
    }
}

extension CertificateFault {
    /// The host whose certificates have this fault.
    var host: String {
        switch self {
        case .expired: "expired.localhost"
        case .notYetValid: "not-yet-valid.localhost"
        case .wrongHost: "wrong-host.localhost"
        case .unknownAuthority: "unknown-authority.localhost"
        case .wrongPurpose: "wrong-purpose.localhost"
        }
    }
}

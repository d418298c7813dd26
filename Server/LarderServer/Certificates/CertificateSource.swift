import LarderTLS
import LarderTime
import Synchronization

/// The TLS servers and certificates of one backend.
///
/// Certificates are valid by the system's clock, not by those of worlds, because clients judge them by theirs. Safe from any thread.
final class CertificateSource: Sendable {
    private struct Name: Hashable {
        /// Empty without one.
        let host: String
        let fault: CertificateFault?
    }

    /// The authority that signs; nil for certificates from files.
    let authority: TLSAuthority?
    private let fixed: TLSIdentity?
    private let hosts: [String]
    private let issued = Mutex<[Name: TLSIdentity]>([:])
    /// Each session chooses its certificate.
    let server: TLSServer
    /// Sessions of it cannot be resumed.
    let serverWithoutResumption: TLSServer

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
        server = try TLSServer { _ in nil }
        serverWithoutResumption = try TLSServer(resumesSessions: false) { _ in nil }
    }

    /// The certificate for the host that a client names; nil for one that cannot be in a certificate.
    ///
    /// - Parameter fault: what is wrong with it. It has no effect on certificates from files.
    func identity(_ host: String?, _ fault: CertificateFault?) -> TLSIdentity? {
        if let fixed { return fixed }
        let name = host?.lowercased() ?? ""
        let names = name.isEmpty || hosts.contains(name) ? hosts : [name]
        let key = Name(host: names == hosts ? "" : name, fault: fault)
        if let known = issued.withLock({ $0[key] }) { return known }
        guard let made = try? authority?.issue(hosts: names, now: SystemWallClock().now, fault: fault) else {
            return nil
        }
        issued.withLock { issued in
            if issued.count >= Self.issuedMaximum { issued = [:] }
            issued[key] = made
        }
        return made
    }
}

/// The certificates with which a backend serves https and wss, on the same port as http and ws.
public enum ServerCertificates: Sendable, Hashable {
    /// An authority that exists only in this process, with certificates of it for every host. For tests: `MockBackend.authorityPEM` is what
    /// clients trust.
    case temporary
    /// The authority of a directory, with certificates of it for every host. It is made on the first use, and stays the same, so that phones
    /// and browsers trust it once.
    case development(directory: String)
    /// A certificate with its chain, and its unencrypted private key: files in PEM.
    case files(certificate: String, key: String)
}

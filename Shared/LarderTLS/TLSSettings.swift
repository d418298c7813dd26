/// How a client checks servers, and what it shows to them.
public struct TLSSettings: Sendable, Hashable {
    /// The authorities that are trusted.
    public struct Roots: Sendable, Hashable {
        var isSystemTrusted: Bool
        var sources: [Source]

        enum Source: Sendable, Hashable {
            case bytes([UInt8])
            case file(String)
        }

        /// The system's authorities. The variables `SSL_CERT_FILE` and `SSL_CERT_DIR` of the environment each replace their part: the
        /// file and the directory. They are read once for the process, when the first connection is made.
        public static let system = Roots(isSystemTrusted: true, sources: [])

        /// Only these certificates, in PEM or one in DER. A certificate that is not an authority's is trusted by itself.
        public static func only(_ certificates: [UInt8]) -> Roots {
            Roots(isSystemTrusted: false, sources: [.bytes(certificates)])
        }

        /// Only the certificates of a file, in PEM or one in DER. It is read when the first connection is made.
        public static func only(file path: String) -> Roots {
            Roots(isSystemTrusted: false, sources: [.file(path)])
        }

        /// These authorities and those of `other`.
        public func and(_ other: Roots) -> Roots {
            Roots(isSystemTrusted: isSystemTrusted || other.isSystemTrusted, sources: sources + other.sources)
        }
    }

    /// A certificate with its private key, for servers that ask for one.
    public struct Identity: Sendable, Hashable, CustomStringConvertible {
        let chain: [UInt8]
        let key: [UInt8]

        /// An identity.
        ///
        /// - Parameters:
        ///   - chain: the certificates in PEM, the own first.
        ///   - key: the unencrypted private key in PEM.
        public init(chain: [UInt8], key: [UInt8]) {
            self.chain = chain
            self.key = key
        }

        /// Does not contain the key.
        public var description: String { "client certificate" }
    }

    /// The authorities that are trusted.
    public var roots = Roots.system
    /// SHA-256 hashes of the public keys (SubjectPublicKeyInfo, RFC 7469 §2.4) of which a server's chain must have one; empty: any
    /// chain. They are checked besides the roots, not instead of them. Keep a second pin for the time after a change of keys.
    public var pinnedKeyHashes: Set<[UInt8]> = []
    /// Shown to servers that ask for a certificate.
    public var identity: Identity?
    /// Whether TLS 1.3 is required. Otherwise TLS 1.2 is accepted, too.
    public var requiresTLS13 = false
    /// Whether sessions are resumed, which saves the exchange of certificates on further connections.
    public var resumesSessions = true
    /// Accepts every certificate of every server: anybody on the way can read and change everything. For tests of one's own servers only;
    /// prefer `roots = .only(…)`. Pins are compared with the server's own certificate then.
    public var insecurelyAcceptsAnyCertificate = false

    /// The system's roots, no pins, no certificate of one's own.
    public init() {}

    /// Whether making a client from them reads files.
    package var readFiles: Bool {
        !insecurelyAcceptsAnyCertificate
            && (roots.isSystemTrusted || roots.sources.contains { if case .file = $0 { true } else { false } })
    }
}

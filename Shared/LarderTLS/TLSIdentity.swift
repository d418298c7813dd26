/// A certificate with its chain and its private key: what a server, or a client with a certificate, shows.
package final class TLSIdentity: Sendable {
    /// The own certificate first, then the authorities between it and a root.
    package let chain: [Certificate]
    let key: PrivateKey

    init(chain: [Certificate], key: PrivateKey) {
        self.chain = chain
        self.key = key
    }

    /// Reads an identity.
    ///
    /// - Parameters:
    ///   - chain: the certificates in PEM, the own first, or one in DER.
    ///   - key: the unencrypted private key in PEM.
    ///   - source: what is read, for messages.
    /// - Throws: `.invalidSettings` if something is missing, or the key is that of another certificate.
    package convenience init(chain: [UInt8], key: [UInt8], from source: String) throws(TLSError) {
        let certificates = try Certificate.read(chain, from: source)
        let key = try PrivateKey.read(key, from: source)
        let own = certificates[0]
        own.library.clearErrors()
        guard unsafe own.library.matchesKey(own.handle, key.handle) == 1 else {
            throw TLSError(
                .invalidSettings,
                "The private key does not belong to the first certificate of \(source), '\(own.subject)'. The own certificate must come "
                    + "first, then those of its authorities."
            )
        }
        self.init(chain: certificates, key: key)
    }

    /// The PEM encoding of the chain.
    package var chainPEM: String { chain.map(\.pem).joined() }

    /// The unencrypted PEM encoding of the key: a secret.
    package var keyPEM: String { key.pem }

    /// The own certificate.
    package var certificate: Certificate { chain[0] }
}

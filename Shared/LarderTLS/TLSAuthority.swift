import Glibc
package import LarderTime

/// A certificate authority for development and tests. A holder of its key can impersonate any host to clients that trust it.
package final class TLSAuthority: Sendable {
    /// Its own certificate: what clients trust.
    package let certificate: Certificate
    private let key: PrivateKey

    init(_ certificate: Certificate, _ key: PrivateKey) {
        self.certificate = certificate
        self.key = key
    }

    /// Makes an authority with a new key. It is valid for ten years.
    ///
    /// - Parameters:
    ///   - name: its name, at most 64 bytes.
    ///   - now: the beginning of its validity is one day earlier, for machines whose clocks differ.
    package convenience init(name: String, now: WallTime) throws(TLSError) {
        let key = try PrivateKey.make()
        let certificate = try Self.make(
            name,
            key: key,
            issuer: nil,
            validity: (now - .seconds(86_400), now + .seconds(3_650 * 86_400)),
            extensions: [
                (ExtensionID.basicConstraints, "critical,CA:TRUE,pathlen:0"),
                (ExtensionID.keyUsage, "critical,keyCertSign,cRLSign"),
                (ExtensionID.subjectKeyIdentifier, "hash"),
            ]
        )
        self.init(certificate, key)
    }

    /// Reads an authority.
    ///
    /// - Throws: `.invalidSettings`.
    package convenience init(certificate: [UInt8], key: [UInt8], from source: String) throws(TLSError) {
        let identity = try TLSIdentity(chain: certificate, key: key, from: source)
        self.init(identity.certificate, identity.key)
    }

    /// The unencrypted PEM encoding of its key: a secret.
    package var keyPEM: String { key.pem }

    /// Issues a certificate for a server, with a new key and the authority in its chain.
    ///
    /// It is valid from a day before `now` for 397 days, the maximum that clients accept.
    ///
    /// - Parameters:
    ///   - hosts: host names, also with a leading `*.`, and IP addresses. At least one.
    ///   - fault: what is wrong with the certificate, for tests of clients.
    /// - Throws: `.invalidSettings` for a host that is neither a name nor an address.
    package func issue(hosts: [String], now: WallTime, fault: CertificateFault? = nil) throws(TLSError) -> TLSIdentity {
        if fault == .unknownAuthority {
            // Nobody trusts an authority that is forgotten at once.
            return try TLSAuthority(name: "Unknown Authority", now: now).issue(hosts: hosts, now: now)
        }
        let named = fault == .wrongHost ? ["wrong.host.invalid"] : hosts
        var names: [String] = []
        for host in named {
            guard let name = Self.alternativeName(host) else {
                throw TLSError(.invalidSettings, "'\(host)' is neither a host name nor an IP address.")
            }
            names.append(name)
        }
        guard let first = named.first else {
            throw TLSError(.invalidSettings, "A certificate needs at least one host.")
        }
        let day = Duration.seconds(86_400)
        let validity =
            switch fault {
            case .expired: (now - day * 90, now - day)
            case .notYetValid: (now + day, now + day * 90)
            default: (now - day, now + day * 396)
            }
        let key = try PrivateKey.make()
        let usage = fault == .wrongPurpose ? "clientAuth" : "serverAuth"
        let leaf = try Self.make(
            String(first.prefix(64)),
            key: key,
            issuer: self,
            validity: validity,
            extensions: [
                (ExtensionID.basicConstraints, "critical,CA:FALSE"),
                (ExtensionID.keyUsage, "critical,digitalSignature"),
                (ExtensionID.extendedKeyUsage, usage),
                (ExtensionID.subjectKeyIdentifier, "hash"),
                (ExtensionID.authorityKeyIdentifier, "keyid"),
                (ExtensionID.subjectAlternativeName, names.joined(separator: ",")),
            ]
        )
        return TLSIdentity(chain: [leaf, certificate], key: key)
    }

    /// Whether a certificate can be issued for a host: it is a name or an address.
    package static func canIssue(for host: String) -> Bool { alternativeName(host) != nil }

    /// A host as OpenSSL's configuration writes it; nil if it is neither a name nor an address, so that it cannot contain more settings.
    static func alternativeName(_ host: String) -> String? {
        if isAddress(host) { return "IP:\(host)" }
        let name = host.hasPrefix("*.") ? host.dropFirst(2) : host[...]
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        let areValid = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
        return areValid && host.utf8.count <= 253 ? "DNS:\(host)" : nil
    }

    /// Makes a certificate; `issuer` nil: signed by its own key.
    static func make(
        _ name: String,
        key: PrivateKey,
        issuer: TLSAuthority?,
        validity: (from: WallTime, until: WallTime),
        extensions: [(id: Int32, value: String)]
    ) throws(TLSError) -> Certificate {
        let library = key.library
        library.clearErrors()
        guard let handle = unsafe library.newCertificate() else { throw failed(library) }
        let certificate = unsafe Certificate(owning: handle, library)
        // Positive, and hard to guess.
        let serial = try library.randomBytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
        let nameBytes = Array(name.utf8)
        let subject = unsafe library.subject(handle)
        var isDone = unsafe library.setVersion(handle, 2) == 1
        isDone = unsafe isDone && library.setInteger(library.serialNumber(handle), max(1, serial)) == 1
        isDone = unsafe isDone && library.setTime(library.mutableNotBefore(handle), Int(validity.from.seconds)) != nil
        isDone = unsafe isDone && library.setTime(library.mutableNotAfter(handle), Int(validity.until.seconds)) != nil
        // MBSTRING_UTF8
        isDone =
            unsafe isDone && library.addToName(subject, "CN", 0x1000, nameBytes, Int32(nameBytes.count), -1, 0) == 1
        let authority = unsafe issuer.map { unsafe $0.certificate.handle } ?? handle
        isDone = unsafe isDone && library.setIssuer(handle, library.subject(authority)) == 1
        isDone = unsafe isDone && library.setPublicKey(handle, key.handle) == 1
        guard isDone else { throw failed(library) }
        for each in extensions {
            guard unsafe add(each.id, each.value, to: handle, authority, library) else { throw failed(library) }
        }
        guard unsafe library.sign(handle, (issuer?.key ?? key).handle, library.sha256()) > 0 else {
            throw failed(library)
        }
        return certificate
    }

    private static func add(
        _ id: Int32,
        _ value: String,
        to handle: OpaquePointer,
        _ authority: OpaquePointer,
        _ library: OpenSSL
    ) -> Bool {
        // X509V3_CTX has 48 bytes in OpenSSL 1.1.1 and 64 in OpenSSL 3.
        unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 16) { context in
            unsafe context.initializeMemory(as: UInt8.self, repeating: 0)
            unsafe library.setExtensionContext(context.baseAddress, authority, handle, nil, nil, 0)
            guard let made = unsafe library.makeExtension(nil, context.baseAddress, id, value) else { return false }
            defer { unsafe library.freeExtension(made) }
            return unsafe library.addExtension(handle, made, -1) == 1
        }
    }

    private static func failed(_ library: OpenSSL) -> TLSError {
        TLSError(.invalidSettings, "OpenSSL made no certificate: \(library.takeReason() ?? "no reason given").")
    }
}

/// What is wrong with a certificate that is issued for tests of clients.
package enum CertificateFault: String, Sendable, CaseIterable {
    case expired
    case notYetValid
    case wrongHost
    case unknownAuthority
    case wrongPurpose
}

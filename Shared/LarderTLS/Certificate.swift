import Glibc
package import LarderTime

/// An X.509 certificate (RFC 5280).
///
/// `@unchecked Sendable`: the certificate is not changed after it was made, and OpenSSL counts its references atomically.
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe package final class Certificate: @unchecked Sendable {
    let handle: OpaquePointer
    let library: OpenSSL

    /// Takes over one reference.
    init(owning handle: OpaquePointer, _ library: OpenSSL) {
        unsafe self.handle = handle
        self.library = library
    }

    /// Adds a reference to a certificate that OpenSSL owns.
    init(sharing handle: OpaquePointer, _ library: OpenSSL) {
        _ = unsafe library.retainCertificate(handle)
        unsafe self.handle = handle
        self.library = library
    }

    deinit { unsafe library.freeCertificate(handle) }

    /// Reads all certificates of a PEM text, or the one of a DER encoding.
    ///
    /// - Parameter source: what is read, for messages: a file name, for example.
    /// - Throws: `.invalidSettings` if there is none or one is damaged, `.unavailable`.
    package static func read(_ bytes: [UInt8], from source: String) throws(TLSError) -> [Certificate] {
        let (found, damage) = parse(bytes, try OpenSSL.required())
        let why = damage.map { " (\($0.reason))" } ?? ""
        guard !found.isEmpty else {
            throw TLSError(
                .invalidSettings,
                "\(source) contains no certificate\(why). It must be PEM ('-----BEGIN CERTIFICATE-----') or DER."
            )
        }
        if let damage {
            throw TLSError(
                .invalidSettings,
                "Certificate \(damage.number) of \(source) is damaged\(why). Replace or remove it."
            )
        }
        return found
    }

    /// The certificates of a text that are sound.
    static func sound(in bytes: [UInt8], _ library: OpenSSL) -> [Certificate] { parse(bytes, library).found }

    private typealias Parsed = (found: [Certificate], damage: (number: Int, reason: String)?)

    private static func parse(_ bytes: [UInt8], _ library: OpenSSL) -> Parsed {
        library.clearErrors()
        // A DER encoding begins with a SEQUENCE.
        return bytes.first == 0x30 ? fromDER(bytes, library) : fromPEM(bytes, library)
    }

    private static func fromDER(_ bytes: [UInt8], _ library: OpenSSL) -> Parsed {
        let handle = unsafe bytes.withUnsafeBufferPointer { buffer in
            var next = buffer.baseAddress
            return unsafe library.certificateFromDER(nil, &next, buffer.count)
        }
        guard let handle = unsafe handle else { return ([], (1, library.takeReason() ?? "no reason given")) }
        return unsafe ([Certificate(owning: handle, library)], nil)
    }

    private static func fromPEM(_ bytes: [UInt8], _ library: OpenSSL) -> Parsed {
        unsafe bytes.withUnsafeBytes { buffer in
            guard let bio = unsafe library.newBIOReading(buffer.baseAddress, Int32(clamping: buffer.count)) else {
                return ([], (1, library.takeReason() ?? "no reason given"))
            }
            defer { _ = unsafe library.freeBIO(bio) }
            var parsed: Parsed = ([], nil)
            while true {
                if let handle = unsafe library.certificateFromPEM(bio, nil, noPassword, nil) {
                    unsafe parsed.found.append(Certificate(owning: handle, library))
                } else {
                    // OpenSSL's name for the end of the text.
                    guard let reason = library.takeReason(), reason != "no start line" else { return parsed }
                    // What follows may be sound. Each attempt reads on.
                    parsed.damage = parsed.damage ?? (parsed.found.count + 1, reason)
                }
            }
        }
    }

    // MARK: Contents

    /// The subject, as RFC 4514 writes it. Control characters are escaped.
    package var subject: String { unsafe name(library.subject(handle)) }

    /// The issuer, as RFC 4514 writes it.
    package var issuer: String { unsafe name(library.issuer(handle)) }

    /// The first second of validity.
    package var validFrom: WallTime { unsafe time(library.notBefore(handle)) }

    /// The last second of validity.
    package var validUntil: WallTime { unsafe time(library.notAfter(handle)) }

    /// The host names and IP addresses that it is for (subject alternative names).
    package var hosts: [String] {
        guard let names = unsafe library.decodedExtension(handle, ExtensionID.subjectAlternativeName, nil, nil)
        else { return [] }
        defer { unsafe library.freeNames(names) }
        var found: [String] = []
        for index in 0..<max(0, unsafe library.stackCount(names)) {
            var kind: Int32 = -1
            let value = unsafe library.nameValue(library.stackElement(names, index), &kind)
            guard kind == 2 || kind == 7, let data = unsafe library.stringData(value) else { continue }
            let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: Int(library.stringLength(value))))
            found.append(kind == 7 ? Self.address(bytes) : Self.printable(bytes))
        }
        return found
    }

    /// The DER encoding.
    package var der: [UInt8] { unsafe library.der(handle, library.derOfCertificate) }

    /// The PEM encoding.
    package var pem: String {
        let bytes = unsafe library.collect { bio in unsafe library.writePEMOfCertificate(bio, handle) == 1 }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    /// The SHA-256 of its DER encoding, by which people compare certificates.
    package var fingerprint: [UInt8] { library.sha256(der) }

    /// The SHA-256 of its SubjectPublicKeyInfo: what pins are compared with (RFC 7469 §2.4).
    package var publicKeyHash: [UInt8] {
        library.sha256(unsafe library.der(library.publicKeyOf(handle), library.derOfPublicKey))
    }

    private func name(_ name: OpaquePointer?) -> String {
        // RFC 2253 with UTF-8 as it is: escapes of special and control characters, unknown types as hexadecimal digits.
        let bytes = unsafe library.collect { bio in unsafe library.printName(bio, name, 0, 0x0111_0313) >= 0 }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    private func time(_ time: OpaquePointer?) -> WallTime {
        var civil = unsafe tm()
        guard unsafe library.timeToCivil(time, &civil) == 1 else { return WallTime(seconds: 0) }
        return WallTime(seconds: Int64(unsafe timegm(&civil)))
    }

    private static func address(_ bytes: [UInt8]) -> String {
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16 else { return "an address of \(bytes.count) bytes" }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard unsafe inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func printable(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }
}

/// The identifiers that OpenSSL has for the extensions of certificates (NID).
enum ExtensionID {
    static let subjectKeyIdentifier: Int32 = 82
    static let keyUsage: Int32 = 83
    static let subjectAlternativeName: Int32 = 85
    static let basicConstraints: Int32 = 87
    static let authorityKeyIdentifier: Int32 = 90
    static let extendedKeyUsage: Int32 = 126
}

/// Answers the question for a password with none: OpenSSL would ask at the terminal.
let noPassword: OpenSSL.Password = { _, _, _, _ in -1 }

/// A private key.
///
/// `@unchecked Sendable`: the key is not changed after it was made, and OpenSSL counts its references atomically.
/// `@safe`: the handle is valid from `init` to `deinit` and never leaves this module.
@safe final class PrivateKey: @unchecked Sendable {
    let handle: OpaquePointer
    let library: OpenSSL

    private init(owning handle: OpaquePointer, _ library: OpenSSL) {
        unsafe self.handle = handle
        self.library = library
    }

    deinit { unsafe library.freeKey(handle) }

    /// Reads an unencrypted PEM key.
    ///
    /// - Throws: `.invalidSettings`, `.unavailable`.
    static func read(_ pem: [UInt8], from source: String) throws(TLSError) -> PrivateKey {
        let library = try OpenSSL.required()
        library.clearErrors()
        let handle = unsafe pem.withUnsafeBytes { buffer -> OpaquePointer? in
            guard let bio = unsafe library.newBIOReading(buffer.baseAddress, Int32(clamping: buffer.count)) else {
                return nil
            }
            defer { _ = unsafe library.freeBIO(bio) }
            return unsafe library.keyFromPEM(bio, nil, noPassword, nil)
        }
        let reason = library.takeReason()
        guard let handle = unsafe handle else {
            let why = reason.map { " (\($0))" } ?? ""
            throw TLSError(
                .invalidSettings,
                "\(source) contains no usable private key\(why). It must be an unencrypted PEM key ('-----BEGIN PRIVATE KEY-----')."
            )
        }
        return unsafe PrivateKey(owning: handle, library)
    }

    /// Makes a key on the curve P-256.
    static func make() throws(TLSError) -> PrivateKey {
        let library = try OpenSSL.required()
        library.clearErrors()
        let context = unsafe library.newKeyContext(ellipticCurve, nil)
        defer { unsafe library.freeKeyContext(context) }
        var handle: OpaquePointer?
        guard unsafe library.beginKey(context) == 1,
            unsafe library.setKeyOption(context, "ec_paramgen_curve", "P-256") == 1,
            unsafe library.makeKey(context, &handle) == 1, let handle = unsafe handle
        else { throw TLSError(.unavailable, "OpenSSL made no key: \(library.takeReason() ?? "no reason given").") }
        return unsafe PrivateKey(owning: handle, library)
    }

    private static let ellipticCurve: Int32 = 408

    /// The unencrypted PEM encoding: a secret.
    var pem: String {
        let bytes = unsafe library.collect { bio in
            unsafe library.writePEMOfKey(bio, handle, nil, nil, 0, nil, nil) == 1
        }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }
}

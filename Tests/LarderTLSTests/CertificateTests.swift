import LarderTime
import TestSupport
import Testing

@testable import LarderTLS

@Suite("Certificates and keys", .oneMinute)
struct CertificateTests {
    @Test func `an issued certificate says what was asked for`() throws {
        let authority = try TLSAuthority(name: "Ünser Amt", now: noon)
        #expect(authority.certificate.subject == "CN=Ünser Amt")
        #expect(authority.certificate.issuer == "CN=Ünser Amt")
        #expect(authority.certificate.validUntil == noon + .seconds(3_650 * 86_400))
        let identity = try authority.issue(hosts: ["localhost", "*.a.test", "10.0.2.2", "fe80::1"], now: noon)
        let leaf = identity.certificate
        #expect(leaf.hosts == ["localhost", "*.a.test", "10.0.2.2", "fe80::1"])
        #expect(leaf.validFrom == noon - .seconds(86_400))
        #expect(leaf.validUntil - leaf.validFrom == .seconds(397 * 86_400))
        #expect(identity.chain.count == 2)
        #expect(identity.chain[1].der == authority.certificate.der)
    }

    @Test func `PEM and DER are read back, and a chain keeps its order`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let again = try TLSIdentity(
            chain: Array(identity.chainPEM.utf8),
            key: Array(identity.keyPEM.utf8),
            from: "the test"
        )
        #expect(again.chain.map(\.der) == identity.chain.map(\.der))
        #expect(again.keyPEM == identity.keyPEM)
        #expect(identity.keyPEM.hasPrefix("-----BEGIN PRIVATE KEY-----"))
        #expect(
            try Certificate.read(identity.certificate.der, from: "the test").map(\.der) == [identity.certificate.der]
        )
    }

    @Test func `a damaged certificate among others is named, and only it is left out of the system's roots`() throws {
        let found = try (1...3).map { try TLSAuthority(name: "Authority \($0)", now: noon).certificate }
        var lines = found[1].pem.split(separator: "\n")
        lines[2] = "this is not Base64!"
        let text = Array((found[0].pem + lines.joined(separator: "\n") + "\n" + found[2].pem).utf8)
        let error = #expect(throws: TLSError.self) { try Certificate.read(text, from: "'roots.pem'") }
        #expect(error?.code == .invalidSettings)
        #expect(error?.description.contains("Certificate 2 of 'roots.pem' is damaged") == true)
        #expect(Certificate.sound(in: text, try .required()).map(\.der) == [found[0].der, found[2].der])
    }

    @Test func `an authority that was stored issues certificates that the first one's clients trust`() throws {
        let first = try TLSAuthority(name: "Test Authority", now: noon)
        let second = try TLSAuthority(
            certificate: Array(first.certificate.pem.utf8),
            key: Array(first.keyPEM.utf8),
            from: "the test"
        )
        let identity = try second.issue(hosts: ["localhost"], now: noon)
        var settings = TLSSettings()
        settings.roots = .only(first.certificate.der)
        var pair = try SessionPair(TLSClient(settings), TLSServer { _ in identity })
        try pair.shakeHands()
        #expect(pair.client.isEstablished)
    }

    @Test(arguments: [
        "", "a b", "a,IP:1.2.3.4", "a\n", "1.2.3.4.", "a..b", "*.", "x:y", String(repeating: "a", count: 64),
    ])
    func `a host that is neither a name nor an address is refused`(_ host: String) throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let error = #expect(throws: TLSError.self) { try authority.issue(hosts: [host], now: noon) }
        #expect(error?.code == .invalidSettings)
        #expect(error?.description.contains("'\(host)'") == true)
    }

    @Test func `what is no certificate or key is refused with its source`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let one = try authority.issue(hosts: ["localhost"], now: noon)
        let other = try authority.issue(hosts: ["localhost"], now: noon)
        let chain = Array(one.chainPEM.utf8)
        for (chain, key, words) in [
            (Array("nothing".utf8), Array(one.keyPEM.utf8), "contains no certificate"),
            ([0x30, 0x03, 1, 2, 3], Array(one.keyPEM.utf8), "contains no certificate"),
            (chain, Array("nothing".utf8), "contains no usable private key"),
            (chain, chain, "contains no usable private key"),
            (chain, Array(other.keyPEM.utf8), "does not belong to the first certificate"),
        ] {
            let error = #expect(throws: TLSError.self) { try TLSIdentity(chain: chain, key: key, from: "'x.pem'") }
            #expect(error?.code == .invalidSettings)
            #expect(error?.description.contains(words) == true)
            #expect(error?.description.contains("'x.pem'") == true)
        }
    }

    @Test func `an encrypted key is refused without a question at the terminal`() throws {
        let encrypted = """
            -----BEGIN ENCRYPTED PRIVATE KEY-----
            MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjOqkhDmVbgTgICCAAw
            DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEMY=
            -----END ENCRYPTED PRIVATE KEY-----
            """
        #expect(throws: TLSError.self) { try PrivateKey.read(Array(encrypted.utf8), from: "the test") }
    }

    @Test func `a library that is missing is named with what to install`() {
        guard case .failure(let error) = OpenSSL.open([["libnothing-1.so", "libnothing-2.so"]]) else {
            Issue.record("a library that does not exist was opened")
            return
        }
        #expect(error.code == .unavailable)
        #expect(error.description.contains("libnothing-1.so"))
        #expect(error.description.contains("apt-get install"))
    }

    @Test func `a file of roots that does not exist is named`() throws {
        var settings = TLSSettings()
        settings.roots = .only(file: "/nowhere/roots.pem")
        let error = #expect(throws: TLSError.self) { try TLSClient(settings) }
        #expect(error?.description.contains("'/nowhere/roots.pem' cannot be read: No such file or directory") == true)
    }
}

@Suite("AES-256-GCM", .oneMinute)
struct AESGCMTests {
    @Test(arguments: [0, 1, 15, 16, 17, 1000, 100_000])
    func `what is sealed is opened, and any changed bit is noticed`(_ count: Int) throws {
        let cipher = try AESGCM(key: AESGCM.randomKey())
        let plain = pattern(count)
        let context = Array("table/row".utf8)
        let sealed = try cipher.seal(plain, context: context)
        #expect(sealed.count == count + AESGCM.overhead)
        #expect(try cipher.open(sealed, context: context) == plain)
        #expect(try cipher.seal(plain, context: context) != sealed)
        for position in stride(from: 0, to: sealed.count, by: max(1, sealed.count / 40)) {
            var changed = sealed
            changed[position] ^= 0x80
            let error = #expect(throws: TLSError.self) { try cipher.open(changed, context: context) }
            #expect(error?.code == .damaged)
        }
        #expect(throws: TLSError.self) { try cipher.open(sealed, context: []) }
        #expect(throws: TLSError.self) { try AESGCM(key: AESGCM.randomKey()).open(sealed, context: context) }
        #expect(throws: TLSError.self) { try cipher.open(Array(sealed.dropLast()), context: context) }
    }

    @Test func `test case 14 of the GCM specification is opened`() throws {
        // Key, nonce and plain text of zero bytes; the tag follows the ciphertext.
        let cipher = try AESGCM(key: [UInt8](repeating: 0, count: 32))
        let sealed: [UInt8] =
            [UInt8](repeating: 0, count: 12)
            + [0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18]
            + [0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19]
        #expect(try cipher.open(sealed) == [UInt8](repeating: 0, count: 16))
    }

    @Test func `a key of another length is refused`() {
        let error = #expect(throws: TLSError.self) { try AESGCM(key: [1, 2, 3]) }
        #expect(error?.description.contains("3 bytes") == true)
    }
}

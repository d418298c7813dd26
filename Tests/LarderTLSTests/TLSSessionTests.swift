import Glibc
import LarderTime
import TestSupport
import Testing

@testable import LarderTLS

@Suite("TLS session", .oneMinute)
struct TLSSessionTests {
    @Test(arguments: [1, 2, 3, 5, 7, 64, 1000, Int.max])
    func `bytes arrive unchanged in both directions however they are split`(step: Int) throws {
        var pair = try SessionPair(step: step)
        try pair.shakeHands()
        #expect(pair.client.isEstablished && pair.server.isEstablished)
        #expect(pair.client.version == "TLSv1.3")
        #expect(pair.client.applicationProtocol == "http/1.1")
        #expect(pair.server.requestedHost == "localhost")
        let request = pattern(40_000)
        let reply = pattern(70_001)
        try pair.client.send(request.span)
        try pair.server.send(reply.span)
        pair.deliver()
        #expect(pair.serverPlain == request)
        #expect(pair.clientPlain == reply)
        #expect(pair.clientError == nil && pair.serverError == nil)
        #expect(!pair.client.hasOutput && !pair.server.hasOutput)
    }

    @Test func `nothing of the plain text is on the wire`() throws {
        var pair = try SessionPair()
        try pair.shakeHands()
        let secret = Array("The quick brown fox jumps over the lazy dog".utf8)
        try pair.client.send(secret.span)
        pair.deliver()
        #expect(pair.serverPlain == secret)
        let wire = pair.clientSent
        let isFound = (0...(wire.count - secret.count)).contains {
            wire[$0..<($0 + secret.count)].elementsEqual(secret)
        }
        #expect(!isFound)
    }

    @Test func `a peer that asks for answers and reads none is cut`() throws {
        var pair = try SessionPair()
        try pair.shakeHands()
        typealias KeyUpdate = @convention(c) (OpaquePointer, Int32) -> Int32
        let library = unsafe dlopen("libssl.so.3", RTLD_NOW) ?? dlopen("libssl.so.1.1", RTLD_NOW)
        let symbol = unsafe try #require(unsafe dlsym(library, "SSL_key_update"))
        let update = unsafe unsafeBitCast(symbol, to: KeyUpdate.self)
        var plain: [UInt8] = []
        let error = #expect(throws: TLSError.self) {
            for _ in 0..<20_000 {
                // A new key, and the request for one of the client's.
                _ = unsafe update(pair.server.handle, 1)
                try pair.server.send([1].span)
                try pair.client.receive(pair.server.takeOutput().span, into: &plain)
            }
        }
        #expect(error?.code == .damaged)
        #expect(pair.client.takeOutput().count < 300_000)
    }

    @Test func `an orderly end is told apart from a cut`() throws {
        var pair = try SessionPair()
        try pair.shakeHands()
        #expect(pair.client.errorAtEnd?.code == .truncated)
        try pair.server.send(pattern(10).span)
        pair.server.end()
        pair.deliver()
        #expect(pair.clientPlain == pattern(10))
        #expect(pair.client.isEndedByPeer)
        #expect(pair.client.errorAtEnd == nil)
        #expect(!pair.server.isEndedByPeer)
    }

    @Test func `a connection that is closed in the handshake is truncated`() throws {
        let pair = try SessionPair()
        try pair.client.start()
        let error = try #require(pair.client.errorAtEnd)
        #expect(error.code == .truncated)
        #expect(error.description.contains("handshake"))
    }

    @Test func `a further connection resumes the session, once for each ticket`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost", "other"], now: noon)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        let client = try TLSClient(settings)
        let server = try TLSServer { _ in identity }
        var first = try SessionPair(client, server)
        try first.shakeHands()
        #expect(!first.client.isResumed)
        var second = try SessionPair(client, server)
        try second.shakeHands()
        #expect(second.client.isResumed && second.server.isResumed)
        var foreign = try SessionPair(client, server, host: "other")
        try foreign.shakeHands()
        #expect(foreign.client.isEstablished && !foreign.client.isResumed)
    }

    @Test func `no session is resumed if either side does not want it`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        for (clientResumes, serverResumes) in [(false, true), (true, false)] {
            var settings = TLSSettings()
            settings.roots = .only(authority.certificate.der)
            settings.resumesSessions = clientResumes
            let client = try TLSClient(settings)
            let server = try TLSServer(resumesSessions: serverResumes) { _ in identity }
            for _ in 0..<2 {
                var pair = try SessionPair(client, server)
                try pair.shakeHands()
                #expect(pair.client.isEstablished && !pair.client.isResumed)
            }
        }
    }

    @Test func `TLS 1_2 works, resumes, and is refused where 1_3 is required`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer(maximumVersion: TLSContext.Version.tls12) { _ in identity }
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        let client = try TLSClient(settings)
        var pair = try SessionPair(client, server, step: 3)
        try pair.shakeHands()
        #expect(pair.client.version == "TLSv1.2")
        try pair.client.send(pattern(20_000).span)
        pair.deliver()
        #expect(pair.serverPlain == pattern(20_000))
        var second = try SessionPair(client, server)
        try second.shakeHands()
        #expect(second.client.isResumed)

        settings.requiresTLS13 = true
        var refused = try SessionPair(TLSClient(settings), server)
        try refused.shakeHands()
        #expect(refused.clientError?.code == .rejectedByPeer)
        #expect(refused.serverError?.code == .handshakeFailed)
        #expect(refused.serverError?.description.contains("1.2 or 1.3") == true)
    }

    @Test func `a server names the certificate for the host that the client asks for`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identities = [
            "one.test": try authority.issue(hosts: ["one.test"], now: noon),
            "two.test": try authority.issue(hosts: ["two.test"], now: noon),
            "": try authority.issue(hosts: ["127.0.0.1"], now: noon),
        ]
        let server = try TLSServer { identities[$0 ?? ""] }
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        let client = try TLSClient(settings)
        for host in ["one.test", "two.test", "127.0.0.1"] {
            var pair = try SessionPair(client, server, host: host)
            try pair.shakeHands()
            #expect(pair.client.isEstablished)
        }
        var unknown = try SessionPair(client, server, host: "three.test")
        try unknown.shakeHands()
        #expect(unknown.clientError?.code == .rejectedByPeer)
        #expect(unknown.serverError != nil)
    }

    @Test func `a server asks for a client certificate and checks it`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer(clientRoots: [authority.certificate]) { _ in identity }
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)

        var without = try SessionPair(TLSClient(settings), server)
        try without.shakeHands()
        #expect(without.serverError != nil)
        #expect(without.clientError?.code == .rejectedByPeer)
        #expect(without.clientError?.description.contains("TLSSettings.identity") == true)

        // With the extended key usage clientAuth.
        let own = try authority.issue(hosts: ["device"], now: noon, fault: .wrongPurpose)
        settings.identity = TLSSettings.Identity(chain: Array(own.chainPEM.utf8), key: Array(own.keyPEM.utf8))
        var with = try SessionPair(TLSClient(settings), server)
        try with.shakeHands()
        #expect(with.server.isEstablished)
        #expect(with.serverError == nil && with.clientError == nil)
    }
}

@Suite("TLS: certificates that are not accepted", .oneMinute)
struct WrongCertificateTests {
    struct Case: CustomTestStringConvertible {
        let fault: CertificateFault
        let code: ErrorCode<TLSError>
        let words: [String]
        var testDescription: String { fault.rawValue }
    }

    static let cases = [
        Case(
            fault: .expired,
            code: .certificateExpired,
            words: ["'CN=localhost'", "was valid until 2026-05-31T12:00:00"]
        ),
        Case(fault: .notYetValid, code: .certificateNotYetValid, words: ["is valid from 2026-06-02T12:00:00"]),
        Case(fault: .wrongHost, code: .certificateForAnotherHost, words: ["'localhost' is for wrong.host.invalid"]),
        Case(
            fault: .unknownAuthority,
            code: .certificateFromUnknownAuthority,
            words: ["signed by 'CN=Unknown Authority'", "roots"]
        ),
        Case(fault: .wrongPurpose, code: .certificateInvalid, words: ["another purpose", "serverAuth"]),
    ]

    @Test(arguments: cases) func `each fault has an error that names the certificate and the remedy`(_ row: Case) throws
    {
        #expect(Self.cases.map(\.fault) == CertificateFault.allCases)
        var pair = try SessionPair(fault: row.fault)
        try pair.shakeHands()
        let error = try #require(pair.clientError)
        #expect(error.code == row.code)
        #expect(error.isAboutCertificate)
        for words in row.words { #expect(error.description.contains(words), "\(error)") }
        #expect(!pair.client.isEstablished)
        // The server hears of it.
        #expect(pair.serverError?.code == .rejectedByPeer)
        #expect(pair.serverPlain.isEmpty)
    }

    @Test(arguments: CertificateFault.allCases)
    func `each of them is accepted if verification is off`(_ fault: CertificateFault) throws {
        var pair = try SessionPair(fault: fault) { $0.insecurelyAcceptsAnyCertificate = true }
        try pair.shakeHands()
        #expect(pair.client.isEstablished && pair.server.isEstablished)
    }

    @Test func `validity is judged by the given time`() throws {
        var late = try SessionPair(now: noon + .seconds(400 * 86_400))
        try late.shakeHands()
        #expect(late.clientError?.code == .certificateExpired)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("::1", true), ("127.0.0.2", false), ("localhost", true), ("localhost.", true),
        ("LOCALHOST", true),
    ])
    func `addresses and names must be in the certificate`(_ host: String, _ isAccepted: Bool) throws {
        var pair = try SessionPair(host: host)
        try pair.shakeHands()
        #expect(pair.client.isEstablished == isAccepted, "\(pair.clientError?.description ?? "")")
        if !isAccepted {
            #expect(pair.clientError?.code == .certificateForAnotherHost)
            #expect(pair.clientError?.description.contains("localhost, 127.0.0.1, ::1") == true)
        }
    }

    @Test(arguments: [("a.example.test", true), ("a.b.example.test", false), ("example.test", false)])
    func `a wildcard stands for one label`(_ host: String, _ isAccepted: Bool) throws {
        var pair = try SessionPair(hosts: ["*.example.test"], host: host)
        try pair.shakeHands()
        #expect(pair.client.isEstablished == isAccepted)
    }

    @Test func `a pinned key is accepted, and another one is not`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer { _ in identity }
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        for pin in [identity.certificate.publicKeyHash, authority.certificate.publicKeyHash] {
            settings.pinnedKeyHashes = [pin, [UInt8](repeating: 7, count: 32)]
            var pair = try SessionPair(TLSClient(settings), server)
            try pair.shakeHands()
            #expect(pair.client.isEstablished)
        }
        settings.pinnedKeyHashes = [[UInt8](repeating: 7, count: 32)]
        var pair = try SessionPair(TLSClient(settings), server)
        try pair.shakeHands()
        #expect(pair.clientError?.code == .certificateNotPinned)
        #expect(pair.clientError?.description.contains("'CN=localhost', 'CN=Test Authority'") == true)
        #expect(!pair.client.isEstablished)
        settings.pinnedKeyHashes = [[7]]
        #expect(throws: TLSError.self) { try TLSClient(settings) }
    }

    @Test(arguments: [TLSContext.Version.tls12, TLSContext.Version.tls13], [false, true])
    func `a server whose key is not pinned gets nothing of the client's certificate`(
        _ version: Int,
        _ acceptsAny: Bool
    ) throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer(clientRoots: [authority.certificate], maximumVersion: version) { _ in identity }
        let own = try authority.issue(hosts: ["device"], now: noon, fault: .wrongPurpose)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        settings.insecurelyAcceptsAnyCertificate = acceptsAny
        settings.identity = TLSSettings.Identity(chain: Array(own.chainPEM.utf8), key: Array(own.keyPEM.utf8))
        for (pin, isPinned) in [(identity.certificate.publicKeyHash, true), ([UInt8](repeating: 7, count: 32), false)] {
            settings.pinnedKeyHashes = [pin]
            var pair = try SessionPair(TLSClient(settings), server)
            try pair.shakeHands()
            #expect(pair.client.isEstablished == isPinned && pair.server.isEstablished == isPinned)
            #expect(pair.clientError?.code == (isPinned ? nil : .certificateNotPinned))
            // With TLS 1.2 certificates are not encrypted.
            let isShown = pair.clientSent.contains(own.certificate.der)
            #expect(isShown == (isPinned && version == TLSContext.Version.tls12))
        }
    }

    /// A chain whose first certificate has only the given extensions beside those of every certificate.
    private func chain(
        _ name: String,
        signedBy issuer: TLSAuthority,
        _ rest: [Certificate] = [],
        extensions: [(id: Int32, value: String)] = []
    ) throws -> TLSIdentity {
        let key = try PrivateKey.make()
        let leaf = try TLSAuthority.make(
            name,
            key: key,
            issuer: issuer,
            validity: (noon - .seconds(60), noon + .seconds(60)),
            extensions: [(ExtensionID.basicConstraints, "critical,CA:FALSE")] + extensions
        )
        return TLSIdentity(chain: [leaf] + rest, key: key)
    }

    @Test func `without verification a pin is of the server's own certificate, whatever else it shows`() throws {
        let pinned = try TLSAuthority(name: "Pinned Authority", now: noon)
        let foreign = try TLSAuthority(name: "Pinned Authority", now: noon)
        let shown = try chain("localhost", signedBy: foreign, [pinned.certificate])
        var settings = TLSSettings()
        settings.insecurelyAcceptsAnyCertificate = true
        settings.pinnedKeyHashes = [pinned.certificate.publicKeyHash]
        var pair = try SessionPair(TLSClient(settings), TLSServer { _ in shown })
        try pair.shakeHands()
        #expect(pair.clientError?.code == .certificateNotPinned)
        settings.pinnedKeyHashes = [shown.certificate.publicKeyHash]
        pair = try SessionPair(TLSClient(settings), TLSServer { _ in shown })
        try pair.shakeHands()
        #expect(pair.client.isEstablished)
    }

    @Test func `the name in the subject does not count`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let shown = try chain(
            "localhost",
            signedBy: authority,
            extensions: [(ExtensionID.extendedKeyUsage, "serverAuth")]
        )
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        var pair = try SessionPair(TLSClient(settings), TLSServer { _ in shown })
        try pair.shakeHands()
        #expect(pair.clientError?.code == .certificateForAnotherHost)
    }

    @Test func `a host name that begins like an address is a name`() throws {
        var address = try SessionPair(hosts: ["127.0.0.1"], host: "127.0.0.1.example.test")
        try address.shakeHands()
        #expect(address.clientError?.code == .certificateForAnotherHost)
        var name = try SessionPair(hosts: ["127.0.0.1.example.test"], host: "127.0.0.1.example.test")
        try name.shakeHands()
        #expect(name.client.isEstablished)
        #expect(name.server.requestedHost == "127.0.0.1.example.test")
    }

    @Test(arguments: [TLSContext.Version.tls12, TLSContext.Version.tls13])
    func `a session whose pins were not found is not resumed`(_ version: Int) throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer(maximumVersion: version) { _ in identity }
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        settings.pinnedKeyHashes = [[UInt8](repeating: 7, count: 32)]
        let client = try TLSClient(settings)
        // Both are alive: the ticket of a released connection could not be used anyway.
        var pairs = try (0..<2).map { _ in try SessionPair(client, server) }
        try pairs[0].shakeHands()
        pairs[1] = try SessionPair(client, server)
        try pairs[1].shakeHands()
        for pair in pairs {
            #expect(pair.clientError?.code == .certificateNotPinned)
            #expect(!pair.client.isEstablished && !pair.client.isResumed)
        }
    }

    @Test(arguments: [TLSContext.Version.tls12, TLSContext.Version.tls13])
    func `the session of a connection that was cut is resumed`(_ version: Int) throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer(maximumVersion: version) { _ in identity }
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        let client = try TLSClient(settings)
        for isResumed in [false, true] {
            // Released at the end of each turn, without an orderly end.
            var pair = try SessionPair(client, server)
            try pair.shakeHands()
            #expect(pair.client.isEstablished && pair.client.isResumed == isResumed)
        }
    }

    @Test func `a self-signed certificate is refused, and trusted by itself`() throws {
        // An authority that shows its own certificate has no name for a host, so the name is checked without it.
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let leaf = try authority.issue(hosts: ["localhost"], now: noon)
        let server = try TLSServer { _ in leaf }
        var settings = TLSSettings()
        settings.roots = .only(leaf.certificate.der)
        var pinned = try SessionPair(TLSClient(settings), server)
        try pinned.shakeHands()
        #expect(pinned.client.isEstablished)

        let bare = TLSIdentity(
            chain: [authority.certificate],
            key: try #require(try? PrivateKey.read(Array(authority.keyPEM.utf8), from: ""))
        )
        settings.roots = .only(leaf.certificate.der)
        var refused = try SessionPair(TLSClient(settings), try TLSServer { _ in bare })
        try refused.shakeHands()
        #expect(refused.clientError?.code == .certificateFromUnknownAuthority)
        #expect(refused.clientError?.description.contains("self-signed") == true)
    }

    @Test func `an authority of the system is not trusted beside private roots`() throws {
        var pair = try SessionPair { $0.roots = .system }
        try pair.shakeHands()
        #expect(pair.clientError?.code == .certificateFromUnknownAuthority)
    }
}

@Suite("TLS: peers that misbehave", .oneMinute)
struct ForeignBytesTests {
    @Test func `plain http in either direction is recognised`() throws {
        let pair = try SessionPair()
        try pair.client.start()
        var plain: [UInt8] = []
        let reply = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        var error = #expect(throws: TLSError.self) { try pair.client.receive(reply.span, into: &plain) }
        #expect(error?.code == .notTLS)
        #expect(error?.description.contains("'HTTP/1.1 400 Bad Request'") == true)
        let request = Array("GET / HTTP/1.1\r\n\r\n".utf8)
        error = #expect(throws: TLSError.self) { try pair.server.receive(request.span, into: &plain) }
        #expect(error?.code == .notTLS)
        #expect(plain.isEmpty)
    }

    @Test func `records of a wrong version or size end the session`() throws {
        for bytes: [UInt8] in [
            [0x16, 0x09, 0x09, 0x00, 0x05] + pattern(5),
            [0x16, 0x03, 0x01, 0xFF, 0xFF] + pattern(65_535),
            [0x15, 0x03, 0x03, 0x00, 0x02, 2, 40],
            [0x16, 0x03, 0x01, 0x00, 0x00],
        ] {
            let pair = try SessionPair()
            var plain: [UInt8] = []
            do {
                try pair.server.receive(bytes.span, into: &plain)
                #expect(!pair.server.isEstablished)
            } catch {
                // The error is kept.
                #expect(throws: error) { try pair.server.receive([1].span, into: &plain) }
            }
            #expect(plain.isEmpty)
        }
    }

    @Test func `a damaged record ends the session with an error`() throws {
        var pair = try SessionPair()
        try pair.shakeHands()
        try pair.client.send(pattern(100).span)
        var record = pair.client.takeOutput()
        record[record.count - 1] ^= 1
        let error = #expect(throws: TLSError.self) { try pair.server.receive(record.span, into: &pair.serverPlain) }
        #expect(error?.code == .damaged)
        #expect(pair.serverPlain.isEmpty)
        // The peer hears of it.
        pair.deliver()
        #expect(pair.clientError?.code == .rejectedByPeer)
    }

    @Test func `a peer that stops in the handshake leaves a session that waits`() throws {
        var whole = try SessionPair()
        try whole.shakeHands()
        let flight = whole.serverSent
        for cut in stride(from: 0, to: min(flight.count, 400), by: 37) {
            let pair = try SessionPair()
            try pair.client.start()
            let hello = pair.client.takeOutput()
            var plain: [UInt8] = []
            try pair.server.receive(hello.span, into: &plain)
            let reply = pair.server.takeOutput().prefix(cut)
            try pair.client.receive(Array(reply).span, into: &plain)
            #expect(!pair.client.isEstablished)
            #expect(pair.client.errorAtEnd?.code == .truncated)
        }
    }

    @Test func `a client that speaks another protocol only is rejected`() throws {
        let authority = try TLSAuthority(name: "Test Authority", now: noon)
        let identity = try authority.issue(hosts: ["localhost"], now: noon)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        let client = try TLSClient(settings)
        let other: [UInt8] = [2] + Array("h2".utf8)
        _ = unsafe client.context.library.offerProtocols(client.context.handle, other, UInt32(other.count))
        var changed = try SessionPair(client, TLSServer { _ in identity })
        try changed.shakeHands()
        #expect(changed.serverError != nil)
        #expect(changed.clientError?.description.contains("no application protocol") == true)
    }
}

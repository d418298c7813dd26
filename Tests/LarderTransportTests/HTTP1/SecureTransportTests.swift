import Foundation
import Glibc
import LarderEvents
import LarderHTTP
import LarderTLS
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

/// A server with a certificate, and the settings of a client that trusts it.
struct SecureServer {
    let wire: WireServer
    let tls: TLSServer
    let authority: TLSAuthority
    let clock: ManualClock

    init(
        hosts: [String] = ["localhost", "127.0.0.1"],
        fault: CertificateFault? = nil,
        receiveBufferBytes: Int32? = nil,
        clock: ManualClock = ManualClock(WallTime(seconds: 1_780_315_200))
    ) throws {
        self.clock = clock
        wire = try WireServer(receiveBufferBytes: receiveBufferBytes)
        let authority = try TLSAuthority(name: "Test Authority", now: clock.now)
        let identity = try authority.issue(hosts: hosts, now: clock.now, fault: fault)
        self.authority = authority
        tls = try TLSServer { _ in identity }
    }

    var settings: TLSSettings {
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        return settings
    }

    func url(_ scheme: String = "https", host: String = "127.0.0.1") -> String { "\(scheme)://\(host):\(wire.port)/" }

    func transport(_ change: (inout SocketTransport.Configuration) -> Void = { _ in }) -> SocketTransport {
        var configuration = SocketTransport.Configuration()
        configuration.tls = settings
        change(&configuration)
        return SocketTransport(configuration, clock: clock, wallClock: clock)
    }
}

@Suite("Socket transport: https", .oneMinute)
struct SecureTransportTests {
    private func sending(_ request: TransportRequest, _ transport: SocketTransport) -> Task<
        Result<TransportResponse, TransportError>, Never
    > {
        Task {
            do throws(TransportError) { return .success(try await transport.send(request)) } catch {
                return .failure(error)
            }
        }
    }

    private func error(_ result: Result<TransportResponse, TransportError>) -> TransportError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test func `requests and replies cross one kept connection`() async throws {
        let server = try SecureServer()
        let transport = server.transport()
        let first = sending(TransportRequest(url: server.url(host: "localhost")), transport)
        let peer = try await server.wire.accept(server.tls)
        #expect(peer.requestedHost == "localhost")
        #expect(try await peer.readHead().hasPrefix("GET / HTTP/1.1\r\nHost: localhost:\(server.wire.port)\r\n"))
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n12")
        #expect(try await first.value.get().body == Array("12".utf8))
        let second = sending(TransportRequest(url: server.url(host: "localhost")), transport)
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n34")
        #expect(try await second.value.get().body == Array("34".utf8))
        #expect(transport.pool.counts.open == 1)
        peer.finish()
    }

    @Test func `large contents pass in both directions`() async throws {
        let server = try SecureServer()
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
        let sent = sending(TransportRequest(method: .put, url: server.url(), body: body), server.transport())
        let peer = try await server.wire.accept(server.tls)
        _ = try await peer.readHead()
        #expect(try await peer.read(count: body.count) == body)
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n")
        await peer.send(body)
        #expect(try await sent.value.get().body == body)
    }

    @Test func `a new connection resumes the session`() async throws {
        let server = try SecureServer()
        let transport = server.transport()
        for isResumed in [false, true] {
            let sent = sending(TransportRequest(url: server.url()), transport)
            let peer = try await server.wire.accept(server.tls)
            #expect(peer.isResumed == isResumed)
            _ = try await peer.readHead()
            await peer.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            #expect(try await sent.value.get().status == .noContent)
            peer.finish()
        }
    }

    @Test(arguments: CertificateFault.allCases)
    func `a certificate that is not accepted is untrusted, and nothing is sent`(_ fault: CertificateFault) async throws
    {
        let server = try SecureServer(fault: fault)
        let sent = sending(TransportRequest(method: .post, url: server.url(), body: [1, 2, 3]), server.transport())
        await #expect(throws: TLSError.self) { try await server.wire.accept(server.tls) }
        let error = try #require(error(await sent.value))
        #expect(error.code == .untrusted && error.kind == .unsent)
        #expect(error.cause?.isAboutCertificate == true)
    }

    @Test func `verification can be turned off`() async throws {
        let server = try SecureServer(fault: .unknownAuthority)
        let sent = sending(
            TransportRequest(url: server.url()),
            server.transport { $0.tls.insecurelyAcceptsAnyCertificate = true }
        )
        let peer = try await server.wire.accept(server.tls)
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(try await sent.value.get().status == .noContent)
    }

    @Test func `a peer that closes, resets or does not speak TLS in the handshake leaves the request unsent`()
        async throws
    {
        for act in 0..<4 {
            let server = try SecureServer()
            let sent = sending(TransportRequest(method: .post, url: server.url(), body: [1]), server.transport())
            let peer = try await server.wire.accept()
            let hello = try await peer.read(count: 5)
            #expect(hello[0] == 0x16)
            switch act {
            case 0: peer.finish()
            case 1: peer.reset()
            case 2: await peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")
            // An alert: handshake_failure.
            default: await peer.send([0x15, 3, 3, 0, 2, 2, 40])
            }
            let error = try #require(error(await sent.value))
            #expect(error.code == .unreachable, "\(act): \(error)")
            if act >= 2 { #expect(error.cause?.code == (act == 2 ? .notTLS : .rejectedByPeer)) }
        }
    }

    @Test func `a peer that is silent in the handshake is unreachable after the time for connecting`() async throws {
        let server = try SecureServer()
        let transport = server.transport { $0.connectTimeout = .seconds(5) }
        let sent = sending(TransportRequest(url: server.url(), timeout: .seconds(60)), transport)
        let peer = try await server.wire.accept()
        _ = try await peer.read(count: 5)
        server.clock.advance(by: .seconds(5))
        let error = try #require(error(await sent.value))
        #expect(error.code == .unreachable)
        #expect(error.description.contains("TLS handshake"))
        #expect(await peer.isEnded())
    }

    @Test func `a request whose time passes in the handshake was not sent, and one that was sent is in doubt`()
        async throws
    {
        for isServed in [false, true] {
            let server = try SecureServer()
            let request = TransportRequest(method: .post, url: server.url(), body: [1], timeout: .seconds(2))
            let sent = sending(request, server.transport())
            let peer: WirePeer
            if isServed {
                peer = try await server.wire.accept(server.tls)
                _ = try await peer.readHead()
            } else {
                peer = try await server.wire.accept()
                _ = try await peer.read(count: 5)
            }
            server.clock.advance(by: .seconds(2))
            let error = try #require(error(await sent.value))
            #expect(error.code == (isServed ? .timedOut : .unreachable))
            #expect(error.kind == (isServed ? .timedOut : .unsent))
            #expect(await peer.isEnded())
        }
    }

    @Test func `cancelling in the handshake closes the connection`() async throws {
        let server = try SecureServer()
        let sent = sending(TransportRequest(url: server.url()), server.transport())
        let peer = try await server.wire.accept()
        _ = try await peer.read(count: 5)
        sent.cancel()
        #expect(error(await sent.value)?.code == .cancelled)
        #expect(await peer.isEnded())
    }

    @Test func `a connection that ends after the request was sent leaves it in doubt`() async throws {
        for cuts in [true, false] {
            let server = try SecureServer()
            let sent = sending(TransportRequest(method: .post, url: server.url(), body: [1]), server.transport())
            let peer = try await server.wire.accept(server.tls)
            _ = try await peer.readHead()
            peer.finish(cutsTLS: cuts)
            #expect(error(await sent.value)?.code == .interrupted)
        }
    }

    @Test func `content that ends with the connection is complete only if TLS has ended in order`() async throws {
        for cuts in [true, false] {
            let server = try SecureServer()
            let sent = sending(TransportRequest(url: server.url()), server.transport())
            let peer = try await server.wire.accept(server.tls)
            _ = try await peer.readHead()
            await peer.send("HTTP/1.1 200 OK\r\n\r\nall of it")
            peer.finish(cutsTLS: cuts)
            let result = await sent.value
            if cuts {
                #expect(error(result)?.code == .interrupted)
                #expect(error(result)?.cause?.code == .truncated)
            } else {
                #expect(try result.get().body == Array("all of it".utf8))
            }
        }
    }

    @Test func `settings that cannot be used fail before anything is connected`() async throws {
        let server = try SecureServer()
        let transport = server.transport { $0.tls.roots = .only(file: "/nowhere/roots.pem") }
        let error = try #require(error(await sending(TransportRequest(url: server.url()), transport).value))
        #expect(error.code == .untrusted && error.cause?.code == .invalidSettings)
        #expect(error.description.contains("/nowhere/roots.pem"))
    }

    @Test func `plain and encrypted connections of one host and port are kept apart`() throws {
        let plain = Endpoint(try HTTPURL(requested: "http://h:8443/"))
        let secure = Endpoint(try HTTPURL(requested: "https://h:8443/"))
        #expect(plain != secure)
        #expect(secure == Endpoint(host: "h", port: 8_443, isSecure: true))
    }

    // MARK: WebSockets

    @Test func `a wss WebSocket exchanges messages and closes in order`() async throws {
        let server = try SecureServer()
        let client = server.transport().webSockets()
        async let connecting = client.connect(server.url("wss", host: "localhost"))
        let peer = try await server.wire.accept(server.tls)
        try await peer.acceptWebSocket(rest: WirePeer.frame(1, Array("hello".utf8)))
        let socket = try await connecting
        #expect(try await socket.receive() == .text("hello"))
        let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        async let sent: Void = socket.send(.binary(large))
        #expect(try await peer.readFrame().payload == large)
        try await sent
        await peer.sendFrame(2, large)
        #expect(try await socket.receive() == .binary(large))
        async let closed = socket.close()
        #expect(try await peer.readFrame().opcode == 8)
        await peer.sendClose(1000)
        #expect(await closed?.code == 1000)
        #expect(await peer.isEnded())
    }

    @Test func `the time for opening a WebSocket covers the reading of authorities from disk`() async throws {
        let server = try SecureServer()
        let path = FileManager.default.temporaryDirectory.path + "/larder-roots-\(server.wire.port)"
        let isMade = unsafe mkfifo(path, 0o600) == 0
        #expect(isMade)
        defer { _ = unsafe unlink(path) }
        var timeouts = WebSocketClient.Configuration()
        timeouts.openTimeout = .seconds(5)
        let transport = server.transport {
            $0.tls.roots = .only(file: path)
            $0.connectTimeout = .seconds(60)
        }
        let (client, url) = (transport.webSockets(timeouts), server.url("wss"))
        let connecting = Task {
            await failure { () async throws(WebSocketError) in _ = try await client.connect(url) }
        }
        try await server.clock.waitForSleepers(1)
        server.clock.advance(by: .seconds(5))
        #expect(await connecting.value?.code == .timedOut)
        // The thread that reads ends with its writer.
        let writer = unsafe open(path, O_WRONLY)
        close(writer)
    }

    @Test func `a wss WebSocket reports certificates, other protocols and cuts`() async throws {
        for fault in [CertificateFault.expired, nil] {
            let server = try SecureServer(fault: fault)
            let client = server.transport().webSockets()
            let url = server.url("wss")
            let connecting = Task {
                await failure { () async throws(WebSocketError) in _ = try await client.connect(url) }
            }
            if fault != nil {
                await #expect(throws: TLSError.self) { try await server.wire.accept(server.tls) }
                #expect(await connecting.value?.code == .untrusted)
            } else {
                let peer = try await server.wire.accept()
                _ = try await peer.read(count: 5)
                await peer.send("HTTP/1.1 400 Bad Request\r\n\r\n")
                #expect(await connecting.value?.code == .unreachable)
            }
        }
        let server = try SecureServer()
        async let connecting = server.transport().webSockets().connect(server.url("wss"))
        let peer = try await server.wire.accept(server.tls)
        try await peer.acceptWebSocket()
        let socket = try await connecting
        peer.finish(cutsTLS: true)
        #expect(
            await failure { () async throws(WebSocketError) in _ = try await socket.receive() }?.code == .interrupted
        )
    }
}

import LarderTLS
import LarderTime
import TestSupport
import Testing

@testable import LarderEngine

/// A client of the engine with TLS over a raw socket.
private struct SecureClient {
    let raw: RawClient
    let session: TLSSession

    init(port: Int, _ client: TLSClient) throws {
        raw = try RawClient(port: port)
        session = try client.session(host: "localhost", port: port, now: SystemWallClock().now)
    }

    /// Sends what the session has to send, reads a byte, and returns what it contained.
    private func step() async throws -> [UInt8] {
        try flush()
        var plain: [UInt8] = []
        let bytes = try await raw.read(count: 1)
        try session.receive(bytes.span, into: &plain)
        return plain
    }

    private func flush() throws {
        let output = session.takeOutput()
        if !output.isEmpty { try raw.send(output) }
    }

    func shakeHands() async throws {
        try session.start()
        while !session.isEstablished { _ = try await step() }
        try flush()
    }

    /// What arrives until the server ends its side.
    func readToEnd() async throws -> String {
        var plain: [UInt8] = []
        while !session.isEndedByPeer { plain += try await step() }
        return String(decoding: plain, as: UTF8.self)
    }
}

@Suite("TLS on the port of the server", .oneMinute)
struct SecureConnectionTests {
    private let client: TLSClient
    private let server: TLSServer

    init() throws {
        let now = SystemWallClock().now
        let authority = try TLSAuthority(name: "Test Authority", now: now)
        let identity = try authority.issue(hosts: ["localhost"], now: now)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        client = try TLSClient(settings)
        server = try TLSServer { _ in identity }
    }

    @Test func `requests are answered one after the other and pipelined, and the connection ends in order`()
        async throws
    {
        try await EchoHandler.serve({ $0.tls = { [server] in server } }) { port in
            let peer = try SecureClient(port: port, client)
            try await peer.shakeHands()
            let requests = "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            try peer.session.send(Array(requests.utf8).span)
            let replies = try await peer.readToEnd()
            #expect(replies.contains("GET /a ") && replies.hasSuffix("GET /b "))
            #expect(await peer.raw.isClosedByPeer())
        }
    }

    @Test func `plain requests are answered on the same port`() async throws {
        try await EchoHandler.serve({ $0.tls = { [server] in server } }) { port in
            let plain = try RawClient(port: port)
            try plain.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await plain.reply().text == "GET /plain ")
        }
    }

    @Test func `a handshake that stalls is ended after the time for a request`() async throws {
        let clock = ManualClock()
        try await EchoHandler.serve({
            $0.tls = { [server] in server }
            $0.monotonic = clock
        }) { port in
            for cut in [1, 5, 60] {
                let peer = try SecureClient(port: port, client)
                try peer.session.start()
                try peer.raw.send(Array(peer.session.takeOutput().prefix(cut)))
                // A request on another connection shows that the loop has read the bytes.
                let other = try RawClient(port: port)
                try other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await other.reply().status == 200)
                clock.advance(by: .seconds(11))
                #expect(await peer.raw.isClosedByPeer())
            }
        }
    }

    @Test func `damaged records end the connection and nothing else`() async throws {
        try await EchoHandler.serve({ $0.tls = { [server] in server } }) { port in
            let peer = try SecureClient(port: port, client)
            try await peer.shakeHands()
            try peer.raw.send([0x17, 3, 3, 0, 32] + [UInt8](repeating: 9, count: 32))
            while await !peer.raw.isClosedByPeer() { _ = try await peer.raw.read(count: 1) }
            let next = try SecureClient(port: port, client)
            try await next.shakeHands()
            #expect(next.session.isEstablished)
        }
    }
}

import LarderHTTP
import LarderTLS
import LarderTime
import TestSupport
import Testing

@testable import LarderEngine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

@Suite("TLS on the port of the server", .oneMinute)
struct SecureConnectionTests {
    private let client: TLSClient
    private let server: TLSServer
    private let begin: SecureSession.Beginning

    init() throws {
        let now = SystemWallClock().now
        let authority = try TLSAuthority(name: "Test Authority", now: now)
        let identity = try authority.issue(hosts: ["localhost"], now: now)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        client = try TLSClient(settings)
        let server = try TLSServer { _ in identity }
        self.server = server
        begin = { _ throws(TLSError) in SecureSession(try server.session()) }
    }

    @Test func `requests are answered one after the other and pipelined, and the connection ends in order`()
        async throws
    {
        try await EchoHandler.serve({ $0.tls = begin }) { port in
            let peer = try SecureClient(port: port, client)
            try await peer.shakeHands()
            let requests = "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            try peer.send(requests)
            let replies = try await peer.readToEnd()
            #expect(replies.contains("GET /a ") && replies.hasSuffix("GET /b "))
            #expect(await peer.raw.isClosedByPeer())
        }
    }

    @Test func `plain requests are answered on the same port`() async throws {
        try await EchoHandler.serve({ $0.tls = begin }) { port in
            let plain = try RawClient(port: port)
            try plain.send("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await plain.reply().text == "GET /plain ")
        }
    }

    @Test func `a handshake that stalls is ended after the time for a request`() async throws {
        let clock = ManualClock()
        try await EchoHandler.serve({
            $0.tls = begin
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
        try await EchoHandler.serve({ $0.tls = begin }) { port in
            let peer = try SecureClient(port: port, client)
            try await peer.shakeHands()
            try peer.raw.send([0x17, 3, 3, 0, 32] + [UInt8](repeating: 9, count: 32))
            while await !peer.raw.isClosedByPeer() { _ = try await peer.raw.read(count: 1) }
            let next = try SecureClient(port: port, client)
            try await next.shakeHands()
            #expect(next.session.isEstablished)
        }
    }

    // MARK: Bad input

    /// What the first bytes of a connection are, besides those of an http request and a handshake.
    private static let badBeginnings: [(name: String, bytes: [UInt8])] = [
        ("a record of an unknown version", [22, 9, 9, 0, 4, 1, 0, 0, 0]),
        ("a record of SSL 3", [22, 3, 0, 0, 4, 1, 0, 0, 0]),
        ("an oversized record", [22, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 70_000)),
        ("an empty record", [22, 3, 1, 0, 0]),
        ("a message of another type", [22, 3, 1, 0, 4, 2, 0, 0, 0]),
        ("an oversized message", [22, 3, 1, 0, 4, 1, 0xFF, 0xFF, 0xFF]),
        ("a handshake of zeros", [22, 3, 1, 2, 0] + [UInt8](repeating: 0, count: 512)),
        ("application data", [23, 3, 3, 0, 4, 1, 2, 3, 4]),
        ("an alert", [21, 3, 3, 0, 2, 2, 40]),
        ("SSL 2", [0x80, 0x2E, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10]),
    ]

    @Test(arguments: badBeginnings.map(\.name), [true, false])
    func `bad input ends its connection, and leaves nothing to do`(_ name: String, _ servesTLS: Bool) async throws {
        let bytes = try #require(Self.badBeginnings.first { $0.name == name }).bytes
        try await EchoHandler.serve(EchoHandler(), { if servesTLS { $0.tls = begin } }) { server in
            let peer = try RawClient(port: server.address.port)
            try? peer.send(bytes)
            peer.finishSending()
            _ = await peer.readToEnd()
            let next = try RawClient(port: server.address.port)
            try next.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await next.reply().status == 200)
            await server.passTurn()
            let (count, activity) = await server.onLoop { ($0.connections.count, $0.activity(countsTimers: true)) }
            #expect(count == 1 && !activity.contains { $0.hasSuffix("not sent") || $0.hasSuffix("timers") })
        }
    }

    @Test func `a client with TLS learns in a sentence that a port speaks http only`() async throws {
        try await EchoHandler.serve { port in
            let peer = try SecureClient(port: port, client)
            try peer.session.start()
            try peer.flush()
            let reply = try await peer.raw.reply()
            #expect(reply.status == 400 && reply.text.contains("this port speaks http only"))
            #expect(await peer.raw.isClosedByPeer())
        }
    }

    // MARK: Output that waits

    @Test func `a request that waits for the peer to read is answered after a part of a record has arrived`() throws {
        var configuration = ServerConfiguration()
        configuration.isStepped = true
        configuration.monotonic = ManualClock()
        configuration.tls = begin
        let server = try HTTPServer(configuration, handler: LargeReplies())
        let loop = server.loops[0]
        func settle() { while loop.step() {} }
        let peer = try SecureClient(port: server.address.port, client)
        try peer.session.start()
        while !peer.session.isEstablished {
            try peer.flush()
            settle()
            _ = try peer.takeAvailable()
        }
        try peer.flush()
        settle()
        let connection = try #require(loop.connections.values.first)
        // The reply does not fit into the buffer of the system.
        var bytes: Int32 = 4_096
        unsafe setsockopt(connection.descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        try peer.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        settle()
        #expect(connection.mustResume && !connection.output.isEmpty)
        // A record that never arrives as a whole: it contains no plain byte, and the loop never learns that it may write.
        try peer.session.send([UInt8](repeating: 0x20, count: 16 << 10).span)
        var record = peer.session.takeOutput()[...]
        var replies: [UInt8] = []
        while !connection.output.isEmpty, record.count > 1 {
            replies += try peer.takeAvailable()
            if let byte = record.popFirst() { try peer.raw.send([byte]) }
            connection.ready(.read)
        }
        #expect(connection.output.isEmpty || !connection.mustResume)
        settle()
        for _ in 0..<3 {
            replies += try peer.takeAvailable()
            settle()
        }
        #expect(replies.count > LargeReplies.byteCount)
        #expect(String(decoding: replies.suffix(7), as: UTF8.self) == "GET /b ")
        loop.beginStop(grace: .zero)
        settle()
        loop.end()
    }

    // MARK: Faults of the handshake

    private func faulty(_ change: (inout HandshakeFault) -> Void) -> SecureSession.Beginning {
        var fault = HandshakeFault()
        change(&fault)
        return { [server, fault] _ throws(TLSError) in SecureSession(try server.session()) { _ in fault } }
    }

    @Test(arguments: [0, 1, 100, 1_000_000], [ExchangeEnding.close, .reset])
    func `a handshake can be cut after any byte of the server`(_ byteCount: Int, _ ending: ExchangeEnding)
        async throws
    {
        let begin = faulty {
            $0.ending = ending
            $0.byteCount = byteCount
        }
        try await EchoHandler.serve({ $0.tls = begin }) { port in
            let peer = try SecureClient(port: port, client)
            try peer.session.start()
            try peer.flush()
            let (bytes, end) = await peer.raw.readToEnd()
            #expect(end == (ending == .close ? .closed : .reset))
            // A reset may discard what has not been read.
            if ending == .close { #expect(byteCount > 1_000 ? bytes.count > 500 : bytes.count == byteCount) }
        }
    }

    @Test func `a handshake can stall, without a time limit and without work`() async throws {
        let clock = ManualClock()
        let begin = faulty {
            $0.ending = .silence
            $0.byteCount = 10
        }
        try await EchoHandler.serve(
            EchoHandler(),
            {
                $0.tls = begin
                $0.monotonic = clock
            }
        ) { server in
            let peer = try SecureClient(port: server.address.port, client)
            try peer.session.start()
            try peer.flush()
            #expect(try await peer.raw.read(count: 10).first == 22)
            try peer.raw.send([1, 2, 3])
            clock.advance(by: .seconds(100_000))
            await server.passTurn()
            #expect(!peer.raw.hasNews)
            let (count, activity) = await server.onLoop { ($0.connections.count, $0.activity(countsTimers: true)) }
            #expect(count == 1 && !activity.contains("1 loop that does not wait"))
            peer.raw.finishSending()
            #expect(await peer.raw.isClosedByPeer())
        }
    }

    @Test(arguments: [true, false])
    func `a connection can be closed without close_notify`(_ omits: Bool) async throws {
        let begin = faulty { $0.omitsCloseNotify = omits }
        try await EchoHandler.serve({ $0.tls = begin }) { port in
            let peer = try SecureClient(port: port, client)
            try await peer.shakeHands()
            try peer.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            let reply = try await peer.read(until: "GET /a ")
            #expect(reply.hasPrefix("HTTP/1.1 200 "))
            var plain: [UInt8] = []
            let rest = await peer.raw.readToEnd().bytes
            try peer.session.receive(rest.span, into: &plain)
            #expect(peer.session.isEndedByPeer != omits)
            #expect(peer.session.errorAtEnd?.code == (omits ? .truncated : nil))
        }
    }
}

/// Answers one path with a large body, and others as `EchoHandler`.
private final class LargeReplies: ExchangeHandler {
    static let byteCount = 900_000

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        guard request.pathText == "/large" else { return EchoHandler.reply(to: request) }
        return Reply(status: .ok, body: .bytes([UInt8](repeating: 0x61, count: Self.byteCount)))
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }

    func finished(_ record: ExchangeRecord) {}
}

import LarderHTTP
import LarderHTTPWire
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Echoes the request, and completes requests for `/later` later.
private final class Mirror: ExchangeHandler {
    let kept = Mutex<[Exchange]>([])
    let records = Mutex<[ExchangeRecord]>([])

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        switch request.pathText {
        case "/later":
            kept.withLock { $0.append(exchange) }
            return nil
        case "/large": return Reply(status: .ok, body: .bytes([UInt8](repeating: 0x61, count: 3_000_000)))
        case "/socket": return .webSocket(WebSocketAcceptance(handler: EchoHandler.Messages()))
        default: return EchoHandler.reply(to: request)
        }
    }

    func rejected(_ rejection: Rejection) -> Reply {
        Reply(status: rejection.status, body: .bytes(Array(rejection.detail.utf8)))
    }

    func finished(_ record: ExchangeRecord) { records.withLock { $0.append(record) } }
}

@Suite("Engine", .oneMinute)
struct EngineTests {
    private func serve(
        _ poller: PollerChoice,
        _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (Int, Mirror, HTTPServer) async throws -> Void
    ) async throws {
        let mirror = Mirror()
        try await EchoHandler.serve(
            mirror,
            { configuration in
                configuration.poller = poller
                change(&configuration)
            },
            { server in try await body(server.address.port, mirror, server) }
        )
    }

    static let pollers: [PollerChoice] = [.epoll, .poll]

    @Test(arguments: pollers)
    func `pipelined requests in any pieces are answered in order`(poller: PollerChoice) async throws {
        try await serve(poller) { port, _, _ in
            let bytes = Array(
                """
                GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
                POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\nTrailer: t\r\n\r\n\
                HEAD /d HTTP/1.1\r\nHost: h\r\n\r\nGET http://other/e HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n
                """.utf8
            )
            for step in [1, 2, 3, 5, 17, 64, bytes.count] {
                let client = try RawClient(port: port)
                for start in stride(from: 0, to: bytes.count, by: step) {
                    try client.send(Array(bytes[start..<min(start + step, bytes.count)]))
                }
                #expect(try await client.reply().text == "GET /a?x=1 ")
                #expect(try await client.reply().text == "POST /b abc")
                #expect(try await client.reply().text == "POST /c hi")
                let head = try await client.reply(isHead: true)
                #expect(head.field("Content-Length") == "8")
                let last = try await client.reply()
                #expect(last.text == "GET /e ")
                #expect(last.field("Connection") == "close")
                #expect(await client.isClosedByPeer())
            }
        }
    }

    static let malformed: [(String, Int)] = [
        ("GET / HTTP/1.1\nHost: h\n\n", 400), ("GET / HTTP/1.1\r\nHost: h\r\n\n", 400),
        ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400), ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /\u{7f} HTTP/1.1\r\nHost: h\r\n\r\n", 400), ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505), ("GET / HTTX/1.1\r\nHost: h\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\nab\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 1\r\n\r\na", 417),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "x", count: 20_000) + "\r\n\r\n", 431),
        ("GET /" + String(repeating: "x", count: 9_000) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414),
    ]

    @Test(arguments: pollers)
    func `an ambiguous request is rejected and its connection is closed`(poller: PollerChoice) async throws {
        try await serve(poller) { port, _, _ in
            for (bytes, status) in Self.malformed {
                let client = try RawClient(port: port)
                try client.send(bytes + "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
                let reply = try await client.reply()
                #expect(reply.status == status, "\(bytes.prefix(80)): \(reply.text)")
                #expect(reply.field("Connection") == "close")
                client.finishSending()
                #expect(await client.isClosedByPeer(), "\(bytes.prefix(80))")
            }
        }
    }

    @Test(arguments: pollers)
    func `a delayed reply delays the pipelined replies after it`(poller: PollerChoice) async throws {
        try await serve(poller) { port, mirror, _ in
            let client = try RawClient(port: port)
            try client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            var exchange: Exchange?
            while exchange == nil, !Task.isCancelled {
                await Task.yield()
                exchange = mirror.kept.withLock { $0.first }
            }
            exchange?.complete(Reply(status: .created, body: .bytes([0x31])))
            exchange?.complete(Reply(status: .conflict))
            #expect(try await client.reply().status == 201)
            #expect(try await client.reply().text == "GET /next ")
        }
    }

    @Test(arguments: pollers)
    func `a request with Expect: 100-continue gets 100`(poller: PollerChoice) async throws {
        try await serve(poller) { port, _, _ in
            let client = try RawClient(port: port)
            try client.send("POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            #expect(try await client.reply().status == 100)
            try client.send("hi")
            #expect(try await client.reply().text == "POST /x hi")
        }
    }

    @Test(arguments: pollers)
    func `a large reply reaches a slow reader completely`(poller: PollerChoice) async throws {
        try await serve(poller) { port, _, _ in
            let client = try RawClient(port: port)
            try client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\nGET /after HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await client.reply().body.count == 3_000_000)
            #expect(try await client.reply().text == "GET /after ")
        }
    }

    @Test(arguments: pollers)
    func `an HTTP/1.0 connection persists only with keep-alive`(poller: PollerChoice) async throws {
        try await serve(poller) { port, _, _ in
            let client = try RawClient(port: port)
            try client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(try await client.reply().field("Connection") == "keep-alive")
            try client.send("GET /b HTTP/1.0\r\n\r\n")
            #expect(try await client.reply().field("Connection") == "close")
            #expect(await client.isClosedByPeer())
        }
    }

    @Test(arguments: pollers)
    func `idle connections are closed and slow heads are rejected after their timeouts`(poller: PollerChoice)
        async throws
    {
        let clock = ManualClock()
        let use = { (configuration: inout ServerConfiguration) in
            configuration.monotonic = clock
            configuration.wall = clock
            configuration.headReadTimeout = .seconds(10)
        }
        try await serve(poller, use) { port, _, _ in
            let idle = try RawClient(port: port)
            try idle.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await idle.reply().status == 200)
            let slow = try RawClient(port: port)
            try slow.send("GET /b HTTP/1.1\r\nHo")
            let probe = try RawClient(port: port)
            try probe.send("GET /c HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await probe.reply().status == 200)
            clock.advance(by: .seconds(11))
            #expect(try await slow.reply().status == 408)
            clock.advance(by: .seconds(75))
            #expect(await idle.isClosedByPeer())
        }
    }

    @Test func `a large body may take longer than a head, if it does not arrive too slowly`() async throws {
        let clock = ManualClock()
        let use = { (configuration: inout ServerConfiguration) in
            configuration.monotonic = clock
            configuration.headReadTimeout = .seconds(10)
        }
        try await serve(.epoll, use) { port, _, server in
            let client = try RawClient(port: port)
            try client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
            for piece in 1...3 {
                try client.send([UInt8](repeating: 0x61, count: 300_000))
                func received() async -> Int {
                    await server.onLoop { $0.connections.values.first?.reader.body.count ?? 0 }
                }
                while await received() < 300_000 * piece, !Task.isCancelled {}
                clock.advance(by: .seconds(9))
                await server.passTurn()
            }
            try client.send([UInt8](repeating: 0x61, count: 50_000))
            while await server.onLoop({ $0.connections.values.first?.reader.body.count ?? 0 }) < 950_000,
                !Task.isCancelled
            {}
            clock.advance(by: .seconds(11))
            #expect(try await client.reply().status == 408)
        }
    }

    @Test(arguments: pollers)
    func `a WebSocket echoes messages, answers pings and completes the closing handshake`(poller: PollerChoice)
        async throws
    {
        try await serve(poller) { port, _, _ in
            let client = try RawClient(port: port)
            try client.send(
                """
                GET /socket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
                """
            )
            let reply = try await client.reply()
            #expect(reply.status == 101)
            #expect(reply.field("Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            var frames: [UInt8] = []
            WebSocketEncoder.append(.ping, [1], mask: 7, to: &frames)
            WebSocketEncoder.append(.text, Array("hé".utf8), mask: 9, to: &frames)
            try client.send(frames)
            #expect(try await client.read(count: 3) == [0x8A, 1, 1])
            #expect(try await client.read(count: 5) == [0x81, 3] + Array("hé".utf8))
            frames = []
            WebSocketEncoder.append(.close, [0x03, 0xE8], mask: 3, to: &frames)
            try client.send(frames)
            #expect(try await client.read(count: 4) == [0x88, 2, 0x03, 0xE8])
            #expect(await client.isClosedByPeer())
        }
    }

    @Test func `an upgrade with another WebSocket version gets the supported version`() async throws {
        try await serve(.epoll) { port, _, _ in
            let client = try RawClient(port: port)
            try client.send(
                """
                GET /socket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
                """
            )
            let reply = try await client.reply()
            #expect(reply.status == 426)
            #expect(reply.field("Sec-WebSocket-Version") == "13")
        }
    }

    @Test(arguments: pollers)
    func `a stop answers requests in progress and closes WebSockets with 1001`(poller: PollerChoice) async throws {
        try await serve(poller) { port, mirror, server in
            let waiting = try RawClient(port: port)
            try waiting.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
            let socket = try RawClient(port: port)
            try socket.send(
                """
                GET /socket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
                """
            )
            #expect(try await socket.reply().status == 101)
            await reached { !mirror.kept.withLock({ $0.isEmpty }) }
            async let stopped: Void = server.stop(grace: .seconds(600))
            #expect(try await socket.read(count: 4) == [0x88, 24, 0x03, 0xE9])
            _ = try await socket.read(count: 22)
            // Nobody would answer on it.
            #expect(throws: RawClient.Failure.self) { try RawClient(port: port) }
            var close: [UInt8] = []
            WebSocketEncoder.append(.close, [0x03, 0xE9], mask: 3, to: &close)
            try socket.send(close)
            mirror.kept.withLock { $0.first }?.complete(Reply(status: .ok, body: .bytes([0x31])))
            let last = try await waiting.reply()
            #expect(last.text == "1")
            #expect(last.field("Connection") == "close")
            await stopped
            #expect(throws: RawClient.Failure.self) { try RawClient(port: port) }
        }
    }

    @Test func `a connection beyond the limit gets an error reply`() async throws {
        try await serve(.epoll, { $0.connectionsMaximum = 1 }) { port, _, _ in
            let first = try RawClient(port: port)
            try first.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try await first.reply().status == 200)
            #expect(try await RawClient(port: port).reply().status == 503)
        }
    }

    @Test func `every exchange is recorded once, after its last byte was written`() async throws {
        try await serve(.epoll) { port, mirror, _ in
            let client = try RawClient(port: port)
            for _ in 0..<3 {
                try client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.reply().status == 200)
            }
            await reached { mirror.records.withLock({ $0.count }) >= 3 }
            let records = mirror.records.withLock { $0 }
            #expect(records.map(\.isComplete) == [true, true, true])
            #expect(records.map(\.request.exchangeIndex) == [1, 2, 3])
        }
    }
}

import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import LarderWebSocket
import TestSupport
import Testing

@testable import LarderServer

@Suite("Streams and queues of a proxy", .oneMinute)
struct ProxyStreamTests {
    /// A server that the test plays, and a proxy in front of it.
    private struct Pair {
        let server: RawServer
        let proxy: Stage
        let clock = ManualClock(WallTime(seconds: 1_790_000_000))

        init(connections: Int = 128, waiting: Int = 1_024, receiveBufferBytes: Int32? = nil) throws {
            let server = try RawServer(receiveBufferBytes: receiveBufferBytes)
            let url = try #require(HTTPURL(server.url))
            let clock = clock
            self.server = server
            proxy = try Stage {
                $0.use(clock)
                $0.origin = .server(url)
                $0.server.upstreamConnectionsMaximum = connections
                $0.server.upstreamWaitingMaximum = waiting
            }
        }

        /// Opens a WebSocket through the proxy. The key is that of RFC 6455 §1.3.
        func webSocket() async throws -> (client: Frames, server: Frames) {
            let client = try proxy.connect()
            try client.send(
                """
                GET /live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
                """
            )
            let peer = try await server.next()
            _ = try await peer.read(until: "\r\n\r\n")
            try peer.send(
                """
                HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=1\r
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n
                """
            )
            let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
            #expect(head.contains("Via: 1.1 larder\r\n") && head.contains("Set-Cookie: a=1\r\n"))
            return (Frames(client, .client), Frames(peer, .server))
        }
    }

    /// A connection that has become a WebSocket.
    private final class Frames {
        let client: RawClient
        private let role: WebSocketRole
        private var parser: WebSocketParser
        private var events: [WebSocketEvent] = []

        init(_ client: RawClient, _ role: WebSocketRole) {
            self.client = client
            self.role = role
            parser = WebSocketParser(role: role)
        }

        func send(_ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) throws {
            var frame: [UInt8] = []
            WebSocketEncoder.append(opcode, payload, mask: role == .client ? 7 : nil, to: &frame)
            try client.send(frame)
        }

        /// Whether the system accepts another frame.
        var canSend: Bool {
            do {
                try send(.ping, [])
                return true
            } catch { return false }
        }

        /// The next event; nil at the end of the connection.
        func next() async throws -> WebSocketEvent? {
            while events.isEmpty {
                let isOver = await client.isClosedByPeer()
                if isOver { return nil }
                let byte = try await client.read(count: 1)
                parser.receive(byte.span, &events)
            }
            return events.removeFirst()
        }
    }

    private static let streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Own: 1\r\n\r\n"

    // MARK: Event streams

    @Test func `a request whose client has gone is cancelled at the server`() async throws {
        let pair = try Pair()
        var client: RawClient? = try pair.proxy.send("GET", "/slow")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        _ = client.take()
        #expect(await peer.readToEnd().bytes.isEmpty)
        #expect(client == nil)
    }

    @Test func `a stream that a fault has replaced is cancelled at the server`() async throws {
        let pair = try Pair()
        try pair.proxy.world.set(Fault(.loseReply(.close), when: FaultMatch("GET", "/events")))
        let client = try pair.proxy.send("GET", "/events")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send(Self.streamHead + "data: 1\n\n")
        #expect(await client.readToEnd().bytes.isEmpty)
        #expect(await peer.readToEnd().bytes.isEmpty)
    }

    @Test func `a stream whose head is held keeps a bounded number of events`() async throws {
        let pair = try Pair()
        try pair.proxy.world.set(Gate(id: "g", when: FaultMatch("GET", "/events"), stage: .reply))
        let client = try pair.proxy.send("GET", "/events")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send(Self.streamHead)
        let event = Array("data: \(String(repeating: "x", count: 60_000))\n\n".utf8)
        // The proxy closes after a megabyte.
        #expect(throws: RawClient.Failure.self) { for _ in 0..<400 { try peer.send(event) } }
        pair.proxy.world.releaseAll(of: "g")
        let (bytes, _) = await client.readToEnd()
        #expect(bytes.count > 900_000 && bytes.count < 1_200_000)
        // The client's stream breaks off: it does not end.
        #expect(!bytes.suffix(5).elementsEqual("0\r\n\r\n".utf8))
    }

    @Test func `an event stream and its request name the proxy in Via`() async throws {
        let pair = try Pair()
        let client = try pair.proxy.send("GET", "/events", fields: ["Via": "1.0 first"])
        let peer = try await pair.server.next()
        let request = String(decoding: try await peer.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(request.contains("Via: 1.0 first, 1.1 larder\r\n"))
        try peer.send(Self.streamHead)
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
        #expect(head.contains("Via: 1.1 larder\r\n") && head.contains("X-Own: 1\r\n"))
    }

    @Test func `the type of an event stream keeps its parameters`() async throws {
        let pair = try Pair()
        let client = try pair.proxy.send("GET", "/events")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send("HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n")
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
        let types = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("content-type:") }
        #expect(types == ["Content-Type: Text/Event-Stream; charset=utf-8"])
    }

    // MARK: The queue for connections

    @Test func `a request that finds no free connection waits, leaves with its client, and is bounded`() async throws {
        let pair = try Pair(connections: 1, waiting: 1)
        let first = try pair.proxy.send("GET", "/first")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        var second: RawClient? = try pair.proxy.send("GET", "/second")
        let third = try await pair.proxy.ask("GET", "/third")
        #expect(third.status == 503)
        #expect(try third.json["detail"]?.string?.contains("already wait") ?? false)
        _ = second.take()
        while await pair.proxy.world.journal().count(where: { $0.status == nil }) == 0 { await Task.yield() }
        #expect(second == nil)
        let fourth = try pair.proxy.send("GET", "/fourth")
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
        #expect(try await first.reply().text == "1")
        #expect(String(decoding: try await peer.read(until: "\r\n\r\n"), as: UTF8.self).hasPrefix("GET /fourth "))
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n4")
        #expect(try await fourth.reply().text == "4")
    }

    @Test func `a request that waits too long for a connection is a 504`() async throws {
        let pair = try Pair(connections: 1, waiting: 1)
        let first = try pair.proxy.send("GET", "/first")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        let second = try pair.proxy.send("GET", "/second")
        // Rejected at once, and so the second one waits.
        #expect(try await pair.proxy.ask("GET", "/third").status == 503)
        pair.clock.advance(by: .seconds(12))
        let reply = try await second.reply()
        #expect(reply.status == 504 && reply.problem == "gateway-timeout")
        #expect(try reply.json["detail"]?.string?.contains("in use for 10 s") ?? false)
        try peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
        #expect(try await first.reply().text == "1")
    }

    // MARK: The end of a WebSocket

    @Test func `a client's close frame without a code has none at the server`() async throws {
        let (client, server) = try await Pair().webSocket()
        try client.send(.close, [])
        #expect(try await server.next() == .close(code: nil, reason: ""))
        #expect(try await server.next() == nil)
    }

    @Test func `a client that vanishes ends the server's connection without a close frame`() async throws {
        let (client, server) = try await Pair().webSocket()
        try client.send(.text, Array("last".utf8))
        client.client.finishSending()
        #expect(try await server.next() == .text(Array("last".utf8)))
        #expect(try await server.next() == nil)
    }

    @Test func `a server's close frame without a code has none at the client`() async throws {
        let (client, server) = try await Pair().webSocket()
        try server.send(.close, [])
        #expect(try await client.next() == .close(code: nil, reason: ""))
    }

    @Test func `a server that vanishes ends the client's connection without a close frame`() async throws {
        let (client, server) = try await Pair().webSocket()
        try server.send(.text, Array("last".utf8))
        server.client.finishSending()
        #expect(try await client.next() == .text(Array("last".utf8)))
        #expect(try await client.next() == nil)
    }

    @Test func `a closed WebSocket whose server does not read is given up`() async throws {
        // A small receive buffer also keeps the sender's small. So most of the messages are pending in the proxy, and they are
        // fewer than its limit of pending bytes.
        let pair = try Pair(receiveBufferBytes: 16_384)
        let (client, server) = try await pair.webSocket()
        for _ in 0..<56 { try client.send(.binary, [UInt8](repeating: 1, count: 65_536)) }
        try client.send(.close, WebSocketEncoder.closePayload(.goingAway, ""))
        // The proxy has answered the close frame, and so it has read the messages.
        #expect(try await client.next() == .close(code: .goingAway, reason: ""))
        #expect(try await client.next() == nil)
        // One second is the interval at which deadlines are checked.
        while server.canSend, !Task.isCancelled {
            pair.clock.advance(by: .seconds(1))
            await Task.yield()
        }
        #expect(pair.clock.uptime >= MonotonicTime(nanoseconds: 0) + .seconds(10))
    }
}

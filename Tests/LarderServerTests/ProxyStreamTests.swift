import LarderCoding
import LarderEngine
import LarderHTTP
import LarderHTTPWire
import LarderTime
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

        /// Opens a WebSocket through the proxy, in the world that a path names.
        func webSocket(_ path: String = "") async throws -> (client: Frames, server: Frames) {
            let client = try proxy.connect()
            try client.send(ProxyStreamTests.upgrade.replacing("GET ", with: "GET \(path)"))
            let peer = try await server.next()
            let request = String(decoding: try await peer.read(until: "\r\n\r\n"), as: UTF8.self)
            #expect(request.contains("Sec-WebSocket-Extensions: permessage-deflate\r\n"))
            try peer.send(ProxyStreamTests.acceptance)
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

    /// The key is that of RFC 6455 §1.3.
    private static let upgrade = """
        GET /live HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r
        Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
        """
    private static let acceptance = """
        HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSet-Cookie: a=1\r
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n
        """
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
        #expect(request.contains("Via: 1.0 first, 1.1 larder-"))
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

    @Test func `a stream with a date of its own has one, also after a gate`() async throws {
        let pair = try Pair()
        try pair.proxy.world.set(Gate(id: "g", when: FaultMatch("GET", "/events"), stage: .reply))
        let client = try pair.proxy.send("GET", "/events")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
        )
        #expect(await pair.proxy.world.wait(for: .held(1), limit: .seconds(3_600)))
        pair.proxy.world.releaseAll()
        let head = String(decoding: try await client.read(until: "\r\n\r\n"), as: UTF8.self)
        let dates = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("date:") }
        #expect(dates == ["Date: Thu, 01 Jan 1970 00:00:00 GMT"])
    }

    @Test func `a stream of another server is slowed, and cut at a byte of its content`() async throws {
        let pair = try Pair()
        let events = FaultMatch("GET", "/events")
        try pair.proxy.world.set(Fault(.drip(bytes: 4, every: .seconds(1)), when: events))
        try pair.proxy.world.set(Fault(.close, when: events, stage: .body, at: 10))
        let client = try pair.proxy.send("GET", "/events")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send(Self.streamHead + "data: 1\n\ndata: 2\n\n")
        _ = try await client.read(until: "\r\n\r\n")
        #expect(try await client.read(count: 9).elementsEqual("4\r\ndata\r\n".utf8))
        #expect(await pair.proxy.advance(pair.proxy.world, until: client) == .seconds(1))
        #expect(try await client.read(count: 9).elementsEqual("4\r\n: 1\n\r\n".utf8))
        #expect(await pair.proxy.advance(pair.proxy.world, until: client) == .seconds(1))
        let (rest, ending) = await client.readToEnd()
        #expect(rest.elementsEqual("2\r\n\nd\r\n".utf8) && ending == .closed)
        // The request is cancelled.
        #expect(await peer.readToEnd().bytes.isEmpty)
    }

    @Test func `a slowed stream ends after its last byte`() async throws {
        let pair = try Pair()
        try pair.proxy.world.set(Fault(.drip(bytes: 4, every: .seconds(1)), when: FaultMatch("GET", "/events")))
        let client = try pair.proxy.send("GET", "/events")
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send(Self.streamHead + "data:1")
        peer.finishSending()
        _ = try await client.read(until: "4\r\ndata\r\n")
        #expect(await pair.proxy.advance(pair.proxy.world, until: client) == .seconds(1))
        #expect(await client.readToEnd().bytes.elementsEqual("2\r\n:1\r\n0\r\n\r\n".utf8))
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
        await reached { await pair.proxy.world.journal().count(where: { $0.status == nil }) > 0 }
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

    // MARK: The messages of a WebSocket

    @Test(arguments: [true, false])
    func `a message of any length is passed on as it arrives`(isUp: Bool) async throws {
        let (client, server) = try await Pair().webSocket()
        let (from, to) = isUp ? (client.client, server.client) : (server.client, client.client)
        var frame: [UInt8] = []
        let message = (0..<(5 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        WebSocketEncoder.append(.binary, message, mask: isUp ? 7 : nil, to: &frame)
        for start in stride(from: 0, to: frame.count, by: 65_536) {
            let piece = Array(frame[start..<min(start + 65_536, frame.count)])
            try from.send(piece)
            #expect(try await to.read(count: piece.count) == piece)
        }
    }

    // MARK: The end of a WebSocket

    @Test func `a client's close frame without a code has none at the server`() async throws {
        let (client, server) = try await Pair().webSocket()
        try client.send(.close, [])
        #expect(try await server.next() == .close(code: nil, reason: ""))
        // The answer is that of the server.
        try server.send(.close, [])
        #expect(try await client.next() == .close(code: nil, reason: ""))
        client.client.finishSending()
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

    @Test func `a client that ends its sending side still gets what the server sends`() async throws {
        let (client, server) = try await Pair().webSocket()
        client.client.finishSending()
        #expect(try await server.next() == nil)
        try server.send(.text, Array("last".utf8))
        #expect(try await client.next() == .text(Array("last".utf8)))
        server.client.finishSending()
        #expect(try await client.next() == nil)
    }

    @Test func `a server that vanishes ends the client's connection without a close frame`() async throws {
        let (client, server) = try await Pair().webSocket()
        try server.send(.text, Array("last".utf8))
        server.client.finishSending()
        #expect(try await client.next() == .text(Array("last".utf8)))
        #expect(try await client.next() == nil)
    }

    @Test func `a server that does not read what a client has left is given up`() async throws {
        let pair = try Pair(receiveBufferBytes: 16_384)
        var (client, server): (Frames?, Frames) = try await pair.webSocket()
        try client?.send(.binary, [UInt8](repeating: 1, count: 300_000))
        client?.client.resetsAtEnd()
        client = nil
        // One second is the interval at which deadlines are checked.
        while server.canSend, !Task.isCancelled {
            pair.clock.advance(by: .seconds(1))
            await Task.yield()
        }
        #expect(pair.clock.uptime >= MonotonicTime(nanoseconds: 0) + .seconds(10))
        #expect(await pair.proxy.backend.activity() == [])
    }

    @Test func `a WebSocket whose opening a fault has replaced is cancelled at the server`() async throws {
        let pair = try Pair()
        try pair.proxy.world.set(Gate(id: "g", when: FaultMatch("GET", "/live"), stage: .reply))
        let client = try pair.proxy.connect()
        try client.send(Self.upgrade)
        let peer = try await pair.server.next()
        _ = try await peer.read(until: "\r\n\r\n")
        try peer.send(Self.acceptance)
        #expect(await pair.proxy.world.wait(for: .held(1), limit: .seconds(3_600)))
        let held = try #require(pair.proxy.world.held.first)
        pair.proxy.world.answer(held, with: CannedReply(status: 503))
        #expect(try await client.reply().status == 503)
        #expect(await peer.isClosedByPeer())
    }

    @Test func `the messages of a server are slowed, and its WebSocket is cut inside of one`() async throws {
        let pair = try Pair()
        let live = FaultMatch("GET", "/live")
        try pair.proxy.world.set(Fault(.bandwidth(down: 20, up: nil), when: live))
        try pair.proxy.world.set(Fault(.reset, when: live, stage: .body, at: 5))
        let (client, server) = try await pair.webSocket()
        try server.send(.text, Array("abc".utf8))
        try server.send(.text, Array("def".utf8))
        for byte in [0x81, 3] + Array("ab".utf8) {
            #expect(await pair.proxy.advance(pair.proxy.world, until: client.client) == .milliseconds(50))
            #expect(try await client.client.read(count: 1) == [byte])
        }
        #expect(await pair.proxy.advance(pair.proxy.world, until: client.client) == .milliseconds(50))
        let (bytes, ending) = await client.client.readToEnd()
        #expect(bytes.elementsEqual("c".utf8) && ending == .reset)
        #expect(try await server.next() == nil)
    }

    @Test func `a WebSocket ends with its world`() async throws {
        let pair = try Pair()
        let world = try pair.proxy.backend.makeWorld(id: "blue")
        let (client, server) = try await pair.webSocket("/w/blue")
        try world.destroy()
        #expect(try await client.next() == nil)
        #expect(try await server.next() == nil)
    }
}

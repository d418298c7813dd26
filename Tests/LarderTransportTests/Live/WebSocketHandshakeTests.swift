import LarderHTTP
import LarderHTTPWire
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderTransport

@Suite("WebSocket handshake of the client", .oneMinute)
struct WebSocketHandshakeTests {
    private let key = Array("the sample nonce".utf8)

    private func upgrade(_ subprotocols: [String] = []) -> WebSocketUpgrade {
        WebSocketUpgrade(key: key, subprotocols: subprotocols)
    }

    /// The negotiated subprotocol and the bytes behind the head.
    private func accepted(
        _ reply: String,
        _ subprotocols: [String] = [],
        step: Int = .max
    ) throws -> (subprotocol: String?, fields: Fields, rest: String) {
        var reader = ResponseReader(.upgrade)
        var events: [ResponseReader.Event] = []
        let bytes = Array(reply.utf8)
        var index = 0
        while index < bytes.count, !reader.isComplete {
            let end = min(bytes.count, index + min(step, bytes.count))
            index += try reader.receive(bytes.span.extracting(index..<end), &events)
        }
        guard case .head(let head)? = events.first else { throw ResponseReader.Failure.noResponse }
        let chosen = try upgrade(subprotocols).agreed(head)
        return (chosen, head.fields, String(decoding: bytes[index...], as: UTF8.self))
    }

    private let good =
        "HTTP/1.1 101 Switching Protocols\r\nUPGRADE: WebSocket\r\nconnection: keep-alive, Upgrade\r\n"
        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"

    @Test func `the request has the form of RFC 6455, and the caller's fields cannot change it`() throws {
        let fields: Fields = [
            .host: "evil", .secWebSocketKey: "x", .upgrade: "h2c", .connection: "close", .contentLength: "5",
            .authorization: "Bearer t",
        ]
        let request = upgrade(["a", "b"]).request(target: "/x?y", authority: "h:81", fields: fields)
        #expect(
            String(decoding: request, as: UTF8.self)
                == "GET /x?y HTTP/1.1\r\nHost: h:81\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                + "Sec-WebSocket-Protocol: a, b\r\nAuthorization: Bearer t\r\n\r\n"
        )
    }

    @Test(arguments: [1, 2, 7, .max])
    func `a 101 response is parsed in any pieces, and bytes after it belong to the WebSocket`(step: Int) throws {
        let offered = good + "Sec-WebSocket-Protocol: b\r\nX: 1\r\n\r\nR"
        let (chosen, fields, rest) = try accepted(offered, ["a", "b"], step: step == .max ? step : 1)
        #expect(chosen == "b" && rest == "R" && fields[.upgrade] == "WebSocket")
        let plain = try accepted(good + "\r\n", ["a"], step: step)
        #expect(plain.subprotocol == nil && plain.rest.isEmpty)
        // An interim reply is not the last.
        _ = try accepted("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + good + "\r\n", step: step)
    }

    @Test(
        "an invalid handshake response is rejected",
        arguments: [
            "HTTP/1.0 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "garbage\r\n\r\n", "HTTP/1.1 1O1 X\r\n\r\n", "HTTP/1.1 101 X\r\nno colon\r\n\r\n",
            "HTTP/1.1 101 X\r\nbad name: x\r\n\r\n",
        ]
    )
    func rejects(reply: String) {
        let error = #expect(throws: (any Error).self, "\(reply)") { try accepted(reply) }
        let isMalformed = (error as? ResponseReader.Failure).map { $0 != .noResponse } ?? false
        #expect((error as? WebSocketError)?.code == .handshake || isMalformed, "\(reply): \(String(describing: error))")
    }

    @Test func `an extension or sub-protocol that was not offered fails`() {
        for line in [
            "Sec-WebSocket-Extensions: permessage-deflate\r\n", "Sec-WebSocket-Protocol: c\r\n",
            "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: b\r\n", "Sec-WebSocket-Protocol: A\r\n",
        ] {
            let error = #expect(throws: WebSocketError.self) { try accepted(good + line + "\r\n", ["a", "b"]) }
            #expect(error?.code == .handshake)
        }
    }

    @Test func `valid WebSocket URLs are parsed and invalid ones rejected`() throws {
        let cases: [(String, String, Int, String, String)] = [
            ("ws://h", "h", 80, "h", "/"),
            ("WS://H.example:81/a/b?c=d%20e", "h.example", 81, "h.example:81", "/a/b?c=d%20e"),
            ("ws://[::1]:8080?x", "::1", 8_080, "[::1]:8080", "/?x"), ("wss://h/", "h", 443, "h", "/"),
        ]
        for (url, host, port, authority, path) in cases {
            let target = try WebSocketClient.Request(url: url).checkedURL()
            #expect(target.host == host && target.port == port && target.authority == authority, "\(url)")
            #expect(target.target == path && target.scheme.isSecure == url.hasPrefix("wss"), "\(url)")
        }
        for url in [
            "", "http://h/", "ws:", "ws://", "ws:///x", "ws://u:p@h/", "ws://h/#f", "ws://h:99999/", "ws://h%0Ax/",
        ] {
            let error = #expect(throws: WebSocketError.self, "\(url)") {
                try WebSocketClient.Request(url: url).checkedURL()
            }
            // Passwords are not logged.
            #expect(error?.description.contains(":p@") == false)
        }
        for names in [["a b"], [""], ["a", "a"], ["ä"]] {
            #expect(throws: WebSocketError.self) {
                try WebSocketClient.Request(url: "ws://h/", subprotocols: names).checkedURL()
            }
        }
    }

    @Test func `a rejected connection is unreachable, and timeouts follow the clock`() async throws {
        let clock = ManualClock()
        let client = SocketTransport(clock: clock).webSockets()
        let dead = try ClosedPort()
        #expect(
            await failure { () async throws(WebSocketError) in
                _ = try await client.connect("ws://127.0.0.1:\(dead.port)/")
            }?.code == .unreachable
        )
        withExtendedLifetime(dead) {}
        let server = try WireServer()
        let url = "ws://127.0.0.1:\(server.port)/"
        let connecting = Task { await failure { () async throws(WebSocketError) in _ = try await client.connect(url) } }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        clock.advance(by: .seconds(15))
        #expect(await connecting.value?.code == .timedOut)
        #expect(await peer.isEnded())

        let cancelled = Task { await failure { () async throws(WebSocketError) in _ = try await client.connect(url) } }
        let second = try await server.accept()
        _ = try await second.readHead()
        cancelled.cancel()
        #expect(await cancelled.value?.code == .cancelled)
        #expect(await second.isEnded())
    }

    @Test func `a handshake does not wait for the requests of its host`() async throws {
        var settings = SocketTransport.Configuration()
        settings.connectionsPerHost = 1
        let transport = SocketTransport(settings, clock: ManualClock())
        let server = try WireServer()
        let pending = Task { try await transport.send(TransportRequest(url: "http://127.0.0.1:\(server.port)/")) }
        let busy = try await server.accept()
        _ = try await busy.readHead()
        async let connecting = transport.webSockets().connect("ws://127.0.0.1:\(server.port)/")
        let peer = try await server.accept()
        try await peer.acceptWebSocket()
        _ = try await connecting
        pending.cancel()
        await #expect(throws: TransportError.self) { try await pending.value }
    }

    /// The error of a connection whose handshake is answered so.
    private func rejection(_ reply: String, ends: Bool = false, clock: ManualClock = ManualClock()) async throws
        -> WebSocketError?
    {
        let server = try WireServer()
        let client = SocketTransport(clock: clock).webSockets()
        let url = "ws://127.0.0.1:\(server.port)/"
        let connecting = Task { await failure { () async throws(WebSocketError) in _ = try await client.connect(url) } }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(reply)
        if ends { peer.finish() }
        let error = await connecting.value
        if !ends { #expect(await peer.isEnded()) }
        return error
    }

    @Test(arguments: [200, 302, 401, 503])
    func `a handshake that the server rejects does not connect, and brings status, fields and content`(
        status: Int
    ) async throws {
        let error = try await rejection("HTTP/1.1 \(status) X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno")
        #expect(error?.code == .rejected && error?.status?.code == status && error?.fields[.retryAfter] == "7")
        #expect(error?.body == Array("no".utf8))
    }

    @Test func `the content of a rejection is decoded, and told as far as it came`() async throws {
        let head = "HTTP/1.1 403 No\r\n"
        let whole = try await rejection(head + "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nno\r\n0\r\n\r\n")
        #expect(whole?.status == .forbidden && whole?.body == Array("no".utf8))
        let broken = try await rejection(head + "Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\nx\r\nmore\r\n")
        #expect(broken?.status == .forbidden && broken?.body == Array("no".utf8))
        let cut = try await rejection(head + "Content-Length: 90\r\n\r\nhalf", ends: true)
        #expect(cut?.status == .forbidden && cut?.body == Array("half".utf8))
        let large = try await rejection(head + "\r\n" + String(repeating: "x", count: 100_000))
        #expect(large?.status == .forbidden && large?.body.count == 64 << 10)
        #expect(try await rejection("HTTP/1.1 204 No\r\n\r\n")?.code == .rejected)
        #expect(try await rejection("garbage\r\n\r\n")?.code == .interrupted)
    }
}

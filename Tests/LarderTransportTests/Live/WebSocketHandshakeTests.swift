import LarderHTTP
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

    private func outcome(_ reply: String, _ subprotocols: [String] = [], step: Int = .max) -> WebSocketUpgrade.Outcome {
        var upgrade = upgrade(subprotocols)
        let bytes = Array(reply.utf8)
        var index = 0
        while index < bytes.count {
            let end = min(bytes.count, index + min(step, bytes.count))
            let outcome = upgrade.receive(bytes.span.extracting(index..<end))
            guard case .pending = outcome else { return outcome }
            index = end
        }
        return .pending
    }

    private func error(_ outcome: WebSocketUpgrade.Outcome) -> WebSocketError? {
        if case .failed(let error) = outcome { error } else { nil }
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
    func `a 101 response is parsed in any pieces, and bytes after it belong to the WebSocket`(step: Int) {
        guard
            case .accepted(let chosen, let fields, let rest) = outcome(
                good + "Sec-WebSocket-Protocol: b\r\nX: 1\r\n\r\nR",
                ["a", "b"]
            )
        else {
            Issue.record("it was not accepted")
            return
        }
        #expect(chosen == "b" && rest == [UInt8(ascii: "R")] && fields[.upgrade] == "WebSocket")
        guard case .accepted(nil, _, []) = outcome(good + "\r\n", ["a"], step: step) else {
            Issue.record("it was not accepted in steps of \(step)")
            return
        }
        guard case .accepted = outcome("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + good + "\r\n", step: step) else {
            Issue.record("an interim reply was taken for the last")
            return
        }
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
    func rejects(reply: String) { #expect(error(outcome(reply))?.code == .handshake, "\(reply)") }

    @Test func `an extension or sub-protocol that was not offered fails`() {
        for line in [
            "Sec-WebSocket-Extensions: permessage-deflate\r\n", "Sec-WebSocket-Protocol: c\r\n",
            "Sec-WebSocket-Protocol: a\r\nSec-WebSocket-Protocol: b\r\n", "Sec-WebSocket-Protocol: A\r\n",
        ] { #expect(error(outcome(good + line + "\r\n", ["a", "b"]))?.code == .handshake) }
    }

    @Test func `a head that does not end is rejected at its limit`() {
        #expect(error(outcome(String(repeating: "x", count: 20_000), step: 500))?.code == .handshake)
    }

    @Test(arguments: [1, 3, .max])
    func `a rejection brings its status and content, by length, in chunks and to the end`(step: Int) {
        let head = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/problem+json\r\n"
        for reply in [
            "Content-Length: 9\r\n\r\n{\"a\":\"b\"}",
            "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n4;x=y\r\n\"b\"}\r\n0\r\n\r\n",
        ] {
            let rejected = error(outcome(head + reply, step: step))
            #expect(rejected?.code == .rejected && rejected?.status == .unauthorized)
            #expect(rejected?.body == Array("{\"a\":\"b\"}".utf8))
            #expect(rejected?.fields[.contentType] == "application/problem+json")
        }
        var cut = upgrade()
        let bytes = Array((head + "Content-Length: 90\r\n\r\nhalf").utf8)
        guard case .pending = cut.receive(bytes.span) else {
            Issue.record("it did not wait")
            return
        }
        #expect(cut.end()?.body == Array("half".utf8))
        #expect(error(outcome("HTTP/1.1 204 No\r\n\r\n"))?.code == .rejected)
        let large = error(outcome(head + "\r\n" + String(repeating: "x", count: 100_000)))
        #expect(large?.body.count == 64 << 10)
    }

    @Test(arguments: ["7fffffffffffffff", "ffffffffffffffff", "100000000000000000000", "", "x"])
    func `a rejection with invalid chunk sizes is reported as a rejection`(size: String) {
        let reply = "HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n\(size)\r\nmore\r\n"
        var upgrade = upgrade()
        let bytes = Array(reply.utf8)
        let outcome = upgrade.receive(bytes.span)
        let rejected = error(outcome) ?? upgrade.end()
        #expect(rejected?.status == .forbidden && rejected?.body.starts(with: Array("no".utf8)) == true)
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
        let client = WebSocketClient(clock: clock)
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

    @Test(arguments: [200, 302, 401, 503])
    func `a handshake that the server rejects does not connect, and brings status, fields and content`(
        status: Int
    ) async throws {
        let server = try WireServer()
        let client = WebSocketClient(clock: ManualClock())
        let url = "ws://127.0.0.1:\(server.port)/"
        let connecting = Task { await failure { () async throws(WebSocketError) in _ = try await client.connect(url) } }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 \(status) X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno")
        let error = await connecting.value
        #expect(error?.code == .rejected && error?.status?.code == status && error?.fields[.retryAfter] == "7")
        #expect(error?.body == Array("no".utf8))
        #expect(await peer.isEnded())
    }

    @Test func `the chunks of a rejection are decoded once, and what is not content is not kept`() {
        var upgrade = upgrade()
        let head = Array("HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        guard case .pending = upgrade.receive(head.span) else {
            Issue.record("it did not wait")
            return
        }
        let chunk = Array("1;\(String(repeating: "x", count: 4_000))\r\na\r\n".utf8)
        for _ in 0..<100 { _ = upgrade.receive(chunk.span) }
        #expect(upgrade.end()?.body == [UInt8](repeating: UInt8(ascii: "a"), count: 100))
    }
}

import Larder
import LarderHTTP
import LarderServer
import LarderTime
import LarderTransport
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderDemo

/// The transport under test.
func makeTransport(
    clock: any MonotonicClock = ManualClock(),
    connectionsPerHost: Int = 6
) -> SocketTransport {
    var configuration = SocketTransport.Configuration()
    configuration.connectionsPerHost = connectionsPerHost
    return SocketTransport(configuration, clock: clock)
}

@Suite("Transports, end to end", .oneMinute)
struct TransportTests {
    private func code(_ body: () async throws(TransportError) -> Void) async -> ErrorCode<TransportError>? {
        do throws(TransportError) {
            try await body()
            return nil
        } catch { return error.code }
    }

    @Test func `a reply is complete with status and fields, and error statuses are replies`()
        async throws
    {
        let backend = try MockBackend.startSmall()
        let transport = makeTransport()
        let reply = try await transport.send(TransportRequest(url: backend.url + "/v1/feed?limit=3"))
        #expect(reply.status == .ok && !reply.body.isEmpty)
        #expect(reply.fields[.contentType]?.hasPrefix("application/json") == true && reply.fields[.etag] != nil)
        let missing = try await transport.send(TransportRequest(url: backend.url + "/v1/nothing"))
        #expect(missing.status == .notFound && missing.fields[.contentType] == "application/problem+json")
        let head = try await transport.send(TransportRequest(method: .head, url: backend.url + "/v1/feed"))
        #expect(head.status == .ok && head.body.isEmpty)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `body and fields arrive unchanged`() async throws {
        let backend = try MockBackend.startSmall()
        let transport = makeTransport()
        let body = Array("{\"text\":\"hé\"}".utf8)
        let reply = try await transport.send(
            TransportRequest(
                method: .post,
                url: backend.url + "/_larder/echo",
                fields: [.contentType: "application/json", .idempotencyKey: "k 1"],
                body: body
            )
        )
        let text = String(decoding: reply.body, as: UTF8.self)
        #expect(text.contains("\"POST\"") && text.contains("k 1") && text.contains("h\u{e9}"))
        #expect(!text.lowercased().contains("cookie"))
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test(
        arguments: [
            FaultAction.truncate(.byte(20)), .truncate(.insideChunkHeader), .malformedChunk, .loseReply(.close), .reset,
            .close,
        ]
    )
    func `an interrupted reply is an error, never a partial body`(action: FaultAction)
        async throws
    {
        let backend = try MockBackend.startSmall()
        try backend.main.set(Fault(action, when: FaultMatch("GET", "/v1/feed")))
        let transport = makeTransport()
        let request = TransportRequest(url: backend.url + "/v1/feed")
        #expect(await code { () async throws(TransportError) in _ = try await transport.send(request) } == .interrupted)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `only a server that cannot be connected to is unreachable`() async throws {
        let backend = try MockBackend.startSmall()
        let url = backend.url + "/v1/feed"
        let transport = makeTransport()
        #expect(try await transport.send(TransportRequest(url: url)).status == .ok)
        #expect(await backend.activity() == [])
        await backend.stop()
        // Without a kept connection, over which the request might have arrived.
        let gone = TransportRequest(url: url)
        let fresh = makeTransport()
        #expect(await code { () async throws(TransportError) in _ = try await fresh.send(gone) } == .unreachable)
        for bad in ["", "nonsense", "ftp://h/", "http://", "/v1/feed", "http:feed"] {
            let request = TransportRequest(url: bad)
            #expect(
                await code { () async throws(TransportError) in _ = try await transport.send(request) } == .invalidURL,
                "\(bad)"
            )
        }
    }

    @Test func `a missing reply times out by the injected clock, and its connection is closed`()
        async throws
    {
        let server = try WireServer()
        let clock = ManualClock()
        let transport = makeTransport(clock: clock)
        let request = TransportRequest(url: "http://127.0.0.1:\(server.port)/", timeout: .milliseconds(1_500))
        let sending = Task { await code { () async throws(TransportError) in _ = try await transport.send(request) } }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        try await clock.waitForSleepers()
        clock.advance(by: .milliseconds(1_499))
        #expect(clock.sleeperCount == 1)
        clock.advance(by: .milliseconds(1))
        #expect(await sending.value == .timedOut)
        #expect(await peer.isEnded())
    }

    @Test func `stalled content times out, and each piece restarts the timeout`() async throws {
        let server = try WireServer()
        let clock = ManualClock()
        let transport = makeTransport(clock: clock)
        let request = TransportRequest(url: "http://127.0.0.1:\(server.port)/", timeout: .seconds(2))
        let opening = Task { try await transport.open(request) }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12")
        let pieces = try await opening.value.body
        #expect(try await pieces.next() == Array("12".utf8))
        clock.advance(by: .seconds(100))
        await peer.send("34")
        #expect(try await pieces.next() == Array("34".utf8))
        let reading = Task { [pieces] in
            let pieces = pieces
            return await code { () async throws(TransportError) in _ = try await pieces.next() }
        }
        try await clock.waitForSleepers()
        clock.advance(by: .seconds(2))
        #expect(await reading.value == .timedOut)
        #expect(await peer.isEnded())
    }

    @Test func `cancelling closes the connection, before the head and during the content`()
        async throws
    {
        let server = try WireServer()
        let transport = makeTransport()
        let request = TransportRequest(url: "http://127.0.0.1:\(server.port)/")
        for isOpen in [false, true] {
            let reading = Task {
                await code { () async throws(TransportError) in
                    let stream = try await transport.open(request)
                    for try await _ in stream.body {}
                }
            }
            let peer = try await server.accept()
            _ = try await peer.readHead()
            if isOpen { await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12") }
            reading.cancel()
            #expect(await reading.value == .cancelled)
            #expect(await peer.isEnded())
        }
    }

    @Test func `a released stream is closed`() async throws {
        let server = try WireServer()
        let transport = makeTransport()
        let opening = Task {
            let stream = try await transport.open(TransportRequest(url: "http://127.0.0.1:\(server.port)/"))
            return stream.status
        }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12")
        #expect(try await opening.value == .ok)
        #expect(await peer.isEnded())
    }

    @Test(
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123", "",
        ]
    )
    func `truncated content is an error even if the connection is closed normally`(reply: String)
        async throws
    {
        let server = try WireServer()
        let transport = makeTransport()
        let request = TransportRequest(method: .post, url: "http://127.0.0.1:\(server.port)/")
        let sending = Task { await code { () async throws(TransportError) in _ = try await transport.send(request) } }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(reply)
        peer.finish()
        #expect(await sending.value == .interrupted)
    }

    @Test func `a server killed after a redirect is not unreachable`()
        async throws
    {
        let server = try WireServer()
        let dead = try ClosedPort()
        let transport = makeTransport()
        let request = TransportRequest(url: "http://127.0.0.1:\(server.port)/")
        let sending = Task { await code { () async throws(TransportError) in _ = try await transport.send(request) } }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:\(dead.port)/\r\nContent-Length: 0\r\n\r\n")
        #expect(await sending.value == .interrupted)
        withExtendedLifetime(dead) {}
    }

    @Test func `the body limit ends the exchange`() async throws {
        let backend = try MockBackend.startSmall()
        let transport = makeTransport()
        let request = TransportRequest(url: backend.url + "/v1/feed", bodyLimit: 100)
        #expect(await code { () async throws(TransportError) in _ = try await transport.send(request) } == .tooLarge)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test(arguments: [Method.post, .patch])
    func `unsafe requests are never repeated, also on a reused connection`(
        method: Method
    )
        async throws
    {
        let backend = try MockBackend.startSmall()
        let transport = makeTransport()
        #expect(try await transport.send(TransportRequest(url: backend.url + "/v1/feed")).status == .ok)
        try backend.main.set(Fault(.loseReply(.close), when: FaultMatch(method.rawValue, "/v1/**")))
        for _ in 0..<3 {
            let request = TransportRequest(
                method: method,
                url: backend.url + (method == .post ? "/v1/posts" : "/v1/profiles/user_1"),
                fields: [
                    .authorization: "Bearer dev-ana",
                    .contentType: method == .post ? "application/json" : "application/merge-patch+json",
                ],
                body: Array("{\"text\":\"once\"}".utf8)
            )
            #expect(
                await code { () async throws(TransportError) in _ = try await transport.send(request) } == .interrupted
            )
        }
        let sent = await backend.main.journal(JournalFilter(method.rawValue, "/v1/**"))
        #expect(sent.count == 3)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `many requests share the connections of a host`() async throws {
        let backend = try MockBackend.startSmall()
        let transport = makeTransport(connectionsPerHost: 2)
        let url = backend.url
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...30 {
                group.addTask {
                    try await transport.send(TransportRequest(url: url + "/v1/feed?limit=\(number)")).status.code
                }
            }
            for try await code in group { #expect(code == 200) }
        }
        let connections = await Set(backend.main.journal().map(\.connection))
        #expect(connections.count <= 2)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a redirect is followed or returned unchanged`() async throws {
        let backend = try MockBackend.startSmall()
        var canned = CannedReply(status: 302)
        canned.headers = ["Location": backend.url + "/v1/feed?limit=1"]
        try backend.main.set(Fault(.respond(canned), when: FaultMatch("GET", "/v1/profiles/user_1")))
        var request = TransportRequest(url: backend.url + "/v1/profiles/user_1")
        let followed = try await makeTransport().send(request)
        #expect(followed.status == .ok && followed.redirectedTo == backend.url + "/v1/feed?limit=1")
        request.followsRedirects = false
        let stopped = try await makeTransport().send(request)
        #expect(stopped.redirectedTo == nil)
        #expect(stopped.status == Status(code: 302) && stopped.fields[.location] != nil)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a large body is streamed at the speed of the reader`() async throws {
        let backend = try MockBackend.startSmall()
        let transport = makeTransport()
        let long = String(repeating: "x", count: 700_000)
        var canned = CannedReply(status: 200)
        canned.body = long
        canned.contentType = "text/plain"
        try backend.main.set(Fault(.respond(canned), when: FaultMatch("GET", "/v1/feed")))
        let stream = try await transport.open(TransportRequest(url: backend.url + "/v1/feed"))
        var (pieces, bytes) = (0, 0)
        for try await piece in stream.body {
            pieces += 1
            bytes += piece.count
        }
        #expect(bytes == 700_000 && pieces > 1)
        #expect(await backend.activity() == [])
        await backend.stop()
    }

    @Test func `a stream outlives the transport that opened it`() async throws {
        let server = try WireServer()
        let request = TransportRequest(url: "http://127.0.0.1:\(server.port)/")
        let opening = Task { try await makeTransport().open(request) }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12")
        let pieces = try await opening.value.body
        #expect(try await pieces.next() == Array("12".utf8))
        await peer.send("34")
        #expect(try await pieces.next() == Array("34".utf8))
        #expect(try await pieces.next() == nil)
    }
}

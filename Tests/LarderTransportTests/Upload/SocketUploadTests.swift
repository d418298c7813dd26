import Foundation
import LarderHTTP
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Uploads over sockets", .oneMinute) struct SocketUploadTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    private func request(
        _ server: WireServer,
        _ body: RequestBody,
        method: LarderHTTP.Method = .put
    ) -> TransportRequest {
        var request = TransportRequest(method: method, url: "http://127.0.0.1:\(server.port)/x")
        request.upload = body
        return request
    }

    private func send(
        _ transport: SocketTransport,
        _ request: TransportRequest
    ) -> Task<Result<TransportResponse, TransportError>, Never> {
        Task {
            do throws(TransportError) { return .success(try await transport.send(request)) } catch {
                return .failure(error)
            }
        }
    }

    private func code(_ result: Result<TransportResponse, TransportError>) -> ErrorCode<TransportError>? {
        if case .failure(let error) = result { error.code } else { nil }
    }

    private func status(_ result: Result<TransportResponse, TransportError>) -> Int? {
        if case .success(let reply) = result { reply.status.code } else { nil }
    }

    @Test func `an unknown length is sent in chunks, a known one with its length, over one connection`() async throws {
        let server = try WireServer()
        let transport = SocketTransport(clock: ManualClock())
        let first = send(transport, request(server, RequestBody(replaying: { pieces(["abc", "", "de"]) })))
        let peer = try await server.accept()
        let head = try await peer.readHead()
        #expect(head.contains("\r\nTransfer-Encoding: chunked\r\n") && !head.contains("Content-Length"))
        let chunks = "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
        #expect(try await peer.read(count: chunks.utf8.count) == Array(chunks.utf8))
        await peer.send(ok)
        #expect(status(await first.value) == 200)
        for _ in 0..<3 {
            let body = RequestBody(Array("abc".utf8), contentType: "text/plain")
            let next = send(transport, request(server, body))
            let head = try await peer.readHead()
            #expect(head.contains("\r\nContent-Length: 3\r\n") && head.contains("\r\nContent-Type: text/plain\r\n"))
            #expect(try await peer.read(count: 3) == Array("abc".utf8))
            await peer.send(ok)
            #expect(status(await next.value) == 200)
        }
        #expect(transport.pool.counts == (1, 1, 0))
    }

    @Test func `a body is read no faster than the server takes it`() async throws {
        let server = try WireServer(receiveBufferBytes: 65_536)
        let transport = SocketTransport(clock: ManualClock())
        let made = MadePieces(number: 640, size: 100_000)
        let sending = send(transport, request(server, RequestBody(made, length: 64_000_000)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        var most = 0
        for step in 0..<64 {
            _ = try await peer.read(count: 1_000_000)
            most = max(most, made.count.bytes - (step + 1) * 1_000_000)
        }
        await peer.send(ok)
        #expect(status(await sending.value) == 200)
        // The kernel's send buffer grows to 4 MiB.
        #expect(most < 8_000_000, "\(most) bytes were read ahead")
    }

    @Test func `an early rejection is delivered, stops the body and closes the connection`() async throws {
        let server = try WireServer(receiveBufferBytes: 65_536)
        let transport = SocketTransport(clock: ManualClock())
        let made = MadePieces(number: 6_400, size: 100_000)
        let sending = send(transport, request(server, RequestBody(made), method: .post))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        _ = try await peer.read(count: 200_000)
        await peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig")
        let result = await sending.value
        #expect(status(result) == 413)
        #expect(await peer.isEnded())
        #expect(made.count.bytes < 20_000_000)
        #expect(transport.pool.counts.idle == 0)
        let next = send(transport, TransportRequest(url: "http://127.0.0.1:\(server.port)/y"))
        let other = try await server.accept()
        #expect(try await other.readHead().hasPrefix("GET /y"))
        await other.send(ok)
        #expect(status(await next.value) == 200)
    }

    @Test func `cancelling stops reading the body and leaves the request incomplete`() async throws {
        let server = try WireServer()
        let transport = SocketTransport(clock: ManualClock())
        let ended = Pending<Bool>()
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.onTermination = { end in ended.finish(end == .cancelled) }
        continuation.yield(Array("abc".utf8))
        let sending = send(transport, request(server, RequestBody(stream)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        #expect(try await peer.read(count: 8) == Array("3\r\nabc\r\n".utf8))
        sending.cancel()
        #expect(code(await sending.value) == .cancelled)
        #expect(await ended.value(ifCancelled: false))
        #expect(await peer.isEnded())
    }

    @Test func `a body that fails ends the request without completing it`() async throws {
        struct Broken: Error {}
        let server = try WireServer()
        let transport = SocketTransport(clock: ManualClock())
        let sending = send(transport, request(server, RequestBody(pieces(["abc"], failing: Broken()))))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        #expect(code(await sending.value) == .bodyFailed)
        await #expect(throws: WireServer.Failure.self) { _ = try await peer.read(count: 9) }
        #expect(transport.pool.counts.idle == 0)
    }

    @Test(arguments: [307, 308, 302])
    func `a redirect repeats a body that can be replayed, and fails for one that cannot`(code redirect: Int)
        async throws
    {
        let server = try WireServer()
        let transport = SocketTransport(clock: ManualClock())
        for body in [RequestBody(replaying: { pieces(["ab"]) }), RequestBody(pieces(["ab"]))] {
            let sending = send(transport, request(server, body))
            let peer = try await server.accept()
            _ = try await peer.readHead()
            _ = try await peer.read(count: 12)
            await peer.send(
                "HTTP/1.1 \(redirect) Moved\r\nLocation: /y\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            )
            if body.isReplayable {
                let next = try await server.accept()
                #expect(try await next.readHead().hasPrefix("PUT /y"))
                #expect(try await next.read(count: 12) == Array("2\r\nab\r\n0\r\n\r\n".utf8))
                await next.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                #expect(status(await sending.value) == 200)
            } else {
                let result = await sending.value
                #expect(code(result) == .bodyNotReplayable)
            }
        }
    }

    @Test func `a redirect that becomes GET does not need the body`() async throws {
        let server = try WireServer()
        let transport = SocketTransport(clock: ManualClock())
        let sending = send(transport, request(server, RequestBody(pieces(["ab"])), method: .post))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        _ = try await peer.read(count: 12)
        await peer.send("HTTP/1.1 303 See Other\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n")
        let head = try await peer.readHead()
        #expect(head.hasPrefix("GET /y") && !head.contains("Transfer-Encoding"))
        await peer.send(ok)
        #expect(status(await sending.value) == 200)
    }

    @Test func `a dead reused connection is replaced for a body that can be replayed; any other gets a new one`()
        async throws
    {
        let server = try WireServer()
        let transport = SocketTransport(clock: ManualClock())
        let first = send(transport, TransportRequest(url: "http://127.0.0.1:\(server.port)/"))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        _ = await first.value
        let second = send(transport, request(server, RequestBody(Array("ab".utf8))))
        _ = try await peer.readHead()
        peer.reset()
        let other = try await server.accept()
        _ = try await other.readHead()
        #expect(try await other.read(count: 2) == Array("ab".utf8))
        await other.send(ok)
        #expect(status(await second.value) == 200)
        let third = send(transport, request(server, RequestBody(pieces(["cd"]))))
        let new = try await server.accept()
        _ = try await new.readHead()
        #expect(try await new.read(count: 12) == Array("2\r\ncd\r\n0\r\n\r\n".utf8))
        await new.send(ok)
        #expect(status(await third.value) == 200)
    }

    @Test func `the timeout begins anew with each sent piece`() async throws {
        let server = try WireServer()
        let clock = ManualClock()
        let transport = SocketTransport(clock: clock)
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        let reports = AsyncStream<Int>.makeStream()
        var body = RequestBody(stream)
        body.onProgress = { reports.continuation.yield($0.sent) }
        let sending = send(transport, request(server, body))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        var sent = reports.stream.makeAsyncIterator()
        for number in 1...4 {
            clock.advance(by: .seconds(20))
            continuation.yield([65])
            #expect(await sent.next(isolation: nil) == number)
            #expect(try await peer.read(count: 6) == Array("1\r\nA\r\n".utf8))
        }
        clock.advance(by: .seconds(29))
        continuation.finish()
        #expect(await sent.next(isolation: nil) == 4)
        #expect(try await peer.read(count: 5) == Array("0\r\n\r\n".utf8))
        clock.advance(by: .seconds(29))
        await peer.send(ok)
        #expect(status(await sending.value) == 200)
    }

    @Test func `a body that stalls for the timeout fails the request`() async throws {
        let server = try WireServer()
        let clock = ManualClock()
        let transport = SocketTransport(clock: clock)
        let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
        let sending = send(transport, request(server, RequestBody(stream)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        clock.advance(by: .seconds(30))
        #expect(code(await sending.value) == .timedOut)
        continuation.finish()
    }

    @Test func `a long poll is not ended by the timeout of other requests`() async throws {
        let server = try WireServer()
        let clock = ManualClock()
        var held = TransportRequest(url: "http://127.0.0.1:\(server.port)/x")
        held.isLongPoll = true
        let sending = send(SocketTransport(clock: clock), held)
        let peer = try await server.accept()
        _ = try await peer.readHead()
        clock.advance(by: .seconds(59))
        await peer.send(ok)
        #expect(status(await sending.value) == 200)
    }

    @Test func `a request with two contents is rejected`() async throws {
        var request = TransportRequest(method: .put, url: "http://127.0.0.1:1/", body: [1])
        request.upload = RequestBody([2])
        let result = await send(SocketTransport(clock: ManualClock()), request).value
        #expect(code(result) == .invalidRequest)
    }
}

import LarderHTTP
import LarderTime
import SDKTestSupport
import TestSupport
import Testing

@testable import LarderTransport

@Suite("Socket transport", .oneMinute) struct SocketTransportTests {
    private let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    /// Whatever the environment says.
    private var direct: SocketTransport.Configuration {
        var configuration = SocketTransport.Configuration()
        configuration.proxies = .none
        return configuration
    }

    private func url(_ server: WireServer) -> String { "http://127.0.0.1:\(server.port)/x" }

    private func transport(
        _ clock: any MonotonicClock = ManualClock(),
        _ change: (inout SocketTransport.Configuration) -> Void = { _ in }
    ) -> SocketTransport {
        var configuration = SocketTransport.Configuration()
        change(&configuration)
        return SocketTransport(configuration, clock: clock)
    }

    /// Sends in a task of its own.
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

    /// Waits for these numbers of connections, idle connections and waiting requests. A caller may get a reply
    /// before the pool has counted its end.
    private func settle(_ transport: SocketTransport, _ counts: (Int, Int, Int)) async {
        await reached { transport.pool.counts == counts }
    }

    private func code(_ result: Result<TransportResponse, TransportError>) -> ErrorCode<TransportError>? {
        if case .failure(let error) = result { error.code } else { nil }
    }

    private func text(_ result: Result<TransportResponse, TransportError>) -> String? {
        if case .success(let reply) = result { String(decoding: reply.body, as: UTF8.self) } else { nil }
    }

    @Test func `a response truncated at any byte is an error, however the connection ends`() async throws {
        let server = try WireServer()
        let transport = transport()
        let bytes = Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".utf8)
        for cut in 0...bytes.count {
            for isReset in [false, true] {
                let sending = send(transport, TransportRequest(url: url(server)))
                let peer = try await server.accept()
                _ = try await peer.readHead()
                await peer.send(Array(bytes[..<cut]))
                if cut < bytes.count {
                    if isReset { peer.reset() } else { peer.finish() }
                    #expect(code(await sending.value) == .interrupted, "\(cut)")
                } else {
                    #expect(text(await sending.value) == "ok")
                    peer.finish()
                }
            }
        }
    }

    @Test(arguments: ["garbage\r\n\r\n", "\0", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"])
    func `an invalid response is an error at once, and its connection is closed`(reply: String) async throws {
        let server = try WireServer()
        let sending = send(transport(), TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(reply)
        #expect(code(await sending.value) == .interrupted)
        #expect(await peer.isEnded())
    }

    @Test func `a connection serves one request after the other`() async throws {
        let server = try WireServer()
        let transport = transport()
        let first = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        for number in 0..<5 {
            let sending = number == 0 ? first : send(transport, TransportRequest(url: url(server) + "\(number)"))
            #expect(try await peer.readHead().hasPrefix("GET /x\(number == 0 ? "" : "\(number)") HTTP/1.1\r\n"))
            await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(number)")
            #expect(text(await sending.value) == "\(number)")
            // The pool has the connection before the reply is delivered.
            #expect(transport.pool.counts == (1, 1, 0))
        }
    }

    @Test func `a dead reused connection is replaced once for idempotent requests`() async throws {
        let server = try WireServer()
        let transport = transport()
        let first = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        _ = await first.value
        let second = send(transport, TransportRequest(method: .put, url: url(server), body: [65, 66]))
        #expect(try await peer.readHead().hasPrefix("PUT"))
        peer.reset()
        let next = try await server.accept()
        #expect(try await next.readHead().hasPrefix("PUT"))
        #expect(try await next.read(count: 2) == [65, 66])
        next.finish()
        #expect(code(await second.value) == .interrupted)
        await settle(transport, (0, 0, 0))
    }

    @Test func `a request that is sent again over a new connection may have arrived, also if there is none`()
        async throws
    {
        var server: WireServer? = try WireServer()
        let address = url(try #require(server))
        let transport = transport()
        let first = send(transport, TransportRequest(url: address))
        let peer = try #require(try await server?.accept())
        _ = try await peer.readHead()
        await peer.send(ok)
        _ = await first.value
        let second = send(transport, TransportRequest(method: .put, url: address, body: [65, 66]))
        #expect(try await peer.readHead().hasPrefix("PUT"))
        // No new connection is accepted.
        server = nil
        peer.reset()
        #expect(code(await second.value) == .interrupted)
        let third = send(transport, TransportRequest(method: .put, url: address, body: [65, 66]))
        #expect(code(await third.value) == .unreachable)
        await settle(transport, (0, 0, 0))
    }

    @Test func `a connection is not replaced after the first byte of the response`() async throws {
        let server = try WireServer()
        let transport = transport()
        let first = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        _ = await first.value
        let second = send(transport, TransportRequest(url: url(server)))
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 100 Continue\r\n\r\n")
        peer.finish()
        #expect(code(await second.value) == .interrupted)
    }

    @Test func `a request that is not idempotent gets a new connection`() async throws {
        let server = try WireServer()
        let transport = transport { $0.connectionsPerHost = 1 }
        let first = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        _ = await first.value
        // One connection is allowed: the idle one is closed.
        let second = send(transport, TransportRequest(method: .post, url: url(server), body: [65]))
        let next = try await server.accept()
        #expect(await peer.isEnded())
        _ = try await next.readHead()
        next.finish()
        #expect(code(await second.value) == .interrupted)
        await settle(transport, (0, 0, 0))
    }

    @Test func `a request with an idempotency key reuses a connection, and is sent again if that is dead`() async throws
    {
        let server = try WireServer()
        let transport = transport()
        var request = TransportRequest(method: .post, url: url(server), fields: [.idempotencyKey: "k"], body: [65])
        let first = send(transport, request)
        let peer = try await server.accept()
        _ = try await peer.readHead()
        #expect(try await peer.read(count: 1) == [65])
        await peer.send(ok)
        #expect(text(await first.value) == "ok")
        request.body = [66]
        let second = send(transport, request)
        #expect(try await peer.readHead().hasPrefix("POST"))
        #expect(try await peer.read(count: 1) == [66])
        peer.reset()
        let next = try await server.accept()
        #expect(try await next.readHead().contains("Idempotency-Key: k\r\n"))
        #expect(try await next.read(count: 1) == [66])
        await next.send(ok)
        #expect(text(await second.value) == "ok")
    }

    @Test func `an idle connection that the server closes or writes to is removed`()
        async throws
    {
        let server = try WireServer()
        let transport = transport()
        for isUnasked in [false, true] {
            let sending = send(transport, TransportRequest(url: url(server)))
            let peer = try await server.accept()
            _ = try await peer.readHead()
            await peer.send(ok)
            _ = await sending.value
            if isUnasked {
                await peer.send("HTTP/1.1 408 Request Timeout\r\n\r\n")
                #expect(await peer.isEnded())
            } else {
                peer.finish()
            }
            await settle(transport, (0, 0, 0))
        }
        let last = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        #expect(text(await last.value) == "ok")
    }

    @Test func `an idle connection is closed after its time`() async throws {
        let server = try WireServer()
        let clock = ManualClock()
        let transport = transport(clock)
        let sending = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        #expect(text(await sending.value) == "ok")
        clock.advance(by: .seconds(30))
        #expect(await peer.isEnded())
        await settle(transport, (0, 0, 0))
    }

    @Test func `idle connections are closed with their transport`() async throws {
        let server = try WireServer()
        let sending = send(transport(), TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send(ok)
        #expect(text(await sending.value) == "ok")
        #expect(await peer.isEnded())
    }

    @Test func `requests beyond the limit wait in order, and one that is cancelled leaves the queue`() async throws {
        let server = try WireServer()
        let transport = transport { $0.connectionsPerHost = 1 }
        let first = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        let cancelled = send(transport, TransportRequest(url: url(server) + "cancelled"))
        let last = send(transport, TransportRequest(url: url(server) + "last"))
        await reached { transport.pool.counts.waiting >= 2 }
        cancelled.cancel()
        #expect(code(await cancelled.value) == .cancelled)
        await settle(transport, (1, 0, 1))
        await peer.send(ok)
        #expect(text(await first.value) == "ok")
        #expect(try await peer.readHead().hasPrefix("GET /xlast "))
        await peer.send(ok)
        #expect(text(await last.value) == "ok")
    }

    @Test func `a waiting request gets the place of a cancelled one`() async throws {
        let server = try WireServer()
        let transport = transport { $0.connectionsPerHost = 1 }
        let first = send(transport, TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        let second = send(transport, TransportRequest(method: .post, url: url(server)))
        await reached { transport.pool.counts.waiting >= 1 }
        first.cancel()
        #expect(await peer.isEnded())
        let next = try await server.accept()
        #expect(try await next.readHead().hasPrefix("POST"))
        await next.send(ok)
        #expect(text(await second.value) == "ok")
    }

    @Test func `reading pauses while nobody takes content, and resumes`() async throws {
        let server = try WireServer()
        let transport = transport { $0.bufferMaximum = 100_000 }
        let opening = Task { try await transport.open(TransportRequest(url: url(server))) }
        let peer = try await server.accept()
        _ = try await peer.readHead()
        // The content ends with the connection, so the test does not depend on the system's buffer sizes.
        await peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        let stream = try await opening.value
        let (chunk, limit) = ([UInt8](repeating: 7, count: 1 << 20), 1 << 30)
        var (sent, rejections) = (0, 0)
        while sent < limit, rejections < 100 {
            let count = peer.sendNow(chunk)
            sent += count
            rejections = count == 0 ? rejections + 1 : 0
            if count == 0 { await Task.yield() }
        }
        #expect(sent < limit, "a client that reads on without a reader takes everything")
        peer.finish()
        var received = 0
        for try await piece in stream.body { received += piece.count }
        #expect(received == sent)
    }

    @Test func `a large body is sent whole`() async throws {
        let server = try WireServer()
        let body = [UInt8](repeating: 65, count: 8 << 20)
        let whole = send(transport(), TransportRequest(method: .put, url: url(server), body: body))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        #expect(try await peer.read(count: body.count) == body)
        await peer.send(ok)
        #expect(text(await whole.value) == "ok")
    }

    @Test func `a response before the end of the request's body is returned, and the connection is not reused`()
        async throws
    {
        let server = try WireServer(receiveBufferBytes: 262_144)
        // Four times the capacity of the system's buffers for a peer that does not read.
        let address = try SocketCall.resolve("127.0.0.1", port: server.port, isNumeric: true).get()[0]
        let probe = try SocketCall.connect(address).get()
        let unread = try await server.accept()
        var capacity = 0
        let chunk = [UInt8](repeating: 65, count: 1 << 20)
        while case .count(let count) = SocketCall.send(probe, chunk, from: 0) { capacity += count }
        SocketCall.shut(probe)
        unread.finish()
        let body = [UInt8](repeating: 65, count: 4 * capacity + (1 << 20))
        let rejected = send(transport(), TransportRequest(method: .put, url: url(server), body: body))
        let peer = try await server.accept()
        #expect(try await peer.readHead().hasPrefix("PUT"))
        await peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
        guard case .success(let reply) = await rejected.value else {
            Issue.record("no reply")
            return
        }
        #expect(reply.status == .contentTooLarge)
        #expect(await peer.isEnded())
    }

    @Test func `fields keep their order and their repeats`() async throws {
        let server = try WireServer()
        let sending = send(transport(), TransportRequest(url: url(server)))
        let peer = try await server.accept()
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 200 OK\r\nSet-Cookie: b\r\nA: 1\r\nSet-Cookie: a\r\nContent-Length: 0\r\n\r\n")
        guard case .success(let reply) = await sending.value else {
            Issue.record("no reply")
            return
        }
        #expect(
            reply.fields.map { "\($0.name)=\($0.value)" } == [
                "Set-Cookie=b", "A=1", "Set-Cookie=a", "Content-Length=0",
            ]
        )
    }

    @Test func `a host that is not found is unreachable and frees its place`() async throws {
        let clock = ManualClock()
        let asked = Pending<Bool>()
        let resolver = HostResolver { _, _ in
            asked.finish(true)
            return .failure(SocketCall.Failure(description: "no such host"))
        }
        let transport = SocketTransport(direct, clock: clock, resolver: resolver)
        let sending = send(transport, TransportRequest(url: "http://no-such-host.test/"))
        #expect(await asked.value(ifCancelled: false))
        #expect(code(await sending.value) == .unreachable)
        await settle(transport, (0, 0, 0))
    }

    @Test func `a server that does not accept is unreachable after the connect timeout`() async throws {
        let silent = try SilentAddress()
        let clock = ManualClock()
        let transport = transport(clock)
        let sending = send(transport, TransportRequest(url: silent.url, timeout: .seconds(1 << 32)))
        let end = Pending<ErrorCode<TransportError>?>()
        Task { end.finish(code(await sending.value)) }
        await reached { transport.pool.counts.open > 0 }
        while transport.pool.counts.open > 0, !Task.isCancelled {
            clock.advance(by: .seconds(10))
            await Task.yield()
        }
        #expect(await end.value(ifCancelled: nil) == .unreachable)
        withExtendedLifetime(silent) {}
    }

    @Test func `a second address is tried after 250 ms beside a first one that does not answer`() async throws {
        let silent = try SilentAddress()
        let server = try WireServer()
        let addresses = [silent.address, try SilentAddress.address(of: server)]
        let clock = ManualClock()
        let loop = SocketLoop(isStepped: true)
        let transport = SocketTransport(
            direct,
            clock: clock,
            resolver: HostResolver { _, _ in .success(addresses) },
            loop: loop
        )
        let sending = send(transport, TransportRequest(url: "http://larder.test/", timeout: .seconds(1 << 32)))
        // The first attempt begins in the step after the lookup.
        await reached { loop.step().isActive }
        try #require(loop.step().timeLeft == .milliseconds(250))
        clock.advance(by: .milliseconds(249))
        try #require(loop.step().timeLeft == .milliseconds(1))
        clock.advance(by: .milliseconds(1))
        let stepping = Task {
            while !Task.isCancelled {
                _ = loop.step()
                await Task.yield()
            }
        }
        defer { stepping.cancel() }
        let peer = try await server.accept()
        #expect(try await peer.readHead().contains("\r\nHost: larder.test\r\n"))
        await peer.send(ok)
        #expect(text(await sending.value) == "ok")
        withExtendedLifetime(silent) {}
    }

    @Test func `the next address is tried after a rejection, and Host is the name`() async throws {
        let server = try WireServer()
        let port = server.port
        let resolver = HostResolver { _, _ in
            let addresses = ["::1", "127.0.0.1"].compactMap {
                try? SocketCall.resolve($0, port: port, isNumeric: true).get()
            }
            return .success(addresses.flatMap { $0 })
        }
        let transport = SocketTransport(direct, clock: ManualClock(), resolver: resolver)
        let sending = send(transport, TransportRequest(url: "http://larder.test:\(port)/"))
        let peer = try await server.accept()
        #expect(try await peer.readHead().contains("\r\nHost: larder.test:\(port)\r\n"))
        await peer.send(ok)
        #expect(text(await sending.value) == "ok")
    }

    @Test func `a thousand requests over six connections are answered although some connections die`() async throws {
        let server = try WireServer()
        let transport = transport()
        let serving = Task {
            await withTaskGroup(of: Void.self) { group in
                while let peer = try? await server.accept() {
                    group.addTask {
                        var served = 0
                        while (try? await peer.readHead()) != nil {
                            await peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                            served += 1
                            // Some connections end without a reply.
                            if served == 50 { return peer.finish() }
                        }
                    }
                }
            }
        }
        let url = url(server)
        let answered = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<1_000 {
                group.addTask {
                    (try? await transport.send(TransportRequest(url: url + "\(number)")))?.status == .ok
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(answered == 1_000)
        #expect(transport.pool.counts.open <= 6)
        serving.cancel()
    }
}

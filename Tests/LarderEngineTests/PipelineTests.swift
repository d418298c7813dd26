import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Answers `/N` with the number of the exchange and N bytes, and measures the reply bytes that wait on its connection when a
/// request is handled.
private final class PaddedReplies: ExchangeHandler {
    let handledCount = Atomic<Int>(0)
    let waitingMaximum = Atomic<Int>(0)
    /// How many requests were handled before the one for `/marker`.
    let countBeforeMarker = Atomic<Int>(-1)

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        if request.pathText == "/marker" {
            countBeforeMarker.store(handledCount.load(ordering: .relaxed), ordering: .relaxed)
            return EchoHandler.reply(to: request)
        }
        handledCount.add(1, ordering: .relaxed)
        waitingMaximum.max(exchange.connection?.output.heldBytes ?? 0, ordering: .relaxed)
        let count = Int(request.pathText.dropFirst()) ?? 0
        let body = Array("\(request.exchangeIndex) ".utf8) + [UInt8](repeating: 0x61, count: count)
        return Reply(status: .ok, body: .bytes(body))
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }
    func finished(_ record: ExchangeRecord) {}
}

@Suite("Pipelined requests", .oneMinute)
struct PipelineTests {
    private static let padding = 20_000
    private static let request = "GET /\(padding) HTTP/1.1\r\nHost: h\r\n\r\n"

    private func number(_ reply: RawReply) -> Int? { reply.text.split(separator: " ").first.flatMap { Int($0) } }

    @Test(arguments: EngineTests.pollers)
    func `a request is not parsed while more than one buffer of replies is pending`(poller: PollerChoice) async throws {
        let handler = PaddedReplies()
        try await EchoHandler.serve(handler, { $0.poller = poller }) { server in
            let client = try RawClient(port: server.address.port)
            try client.send(String(repeating: Self.request, count: 3_000))
            var numbers: [Int?] = []
            for _ in 0..<3_000 { numbers.append(number(try await client.reply())) }
            #expect(numbers == Array(1...3_000))
            #expect(handler.waitingMaximum.load(ordering: .relaxed) <= 128 << 10)
        }
    }

    @Test(arguments: EngineTests.pollers)
    func `a peer that has closed its sending side gets all pipelined replies, then the end`(poller: PollerChoice)
        async throws
    {
        try await EchoHandler.serve(PaddedReplies(), { $0.poller = poller }) { server in
            for rest in ["", "GET /half HTT"] {
                let client = try RawClient(port: server.address.port)
                try client.send(String(repeating: Self.request, count: 500) + rest)
                client.finishSending()
                var numbers: [Int?] = []
                for _ in 0..<500 { numbers.append(number(try await client.reply())) }
                #expect(numbers == Array(1...500))
                #expect(await client.isClosedByPeer())
            }
        }
    }

    @Test func `a stopping server answers the pipelined requests that it has read`() async throws {
        let handler = PaddedReplies()
        try await EchoHandler.serve(handler) { server in
            let client = try RawClient(port: server.address.port)
            try server.holdingLoop { try client.send(String(repeating: Self.request, count: 500)) }
            await reached { handler.handledCount.load(ordering: .relaxed) > 0 }
            async let stopped: Void = server.stop(grace: .seconds(600))
            var numbers: [Int?] = []
            for _ in 0..<500 { numbers.append(number(try await client.reply())) }
            #expect(numbers == Array(1...500))
            #expect(await client.isClosedByPeer())
            await stopped
        }
    }

    @Test(arguments: EngineTests.pollers)
    func `another connection is served between the replies of a pipeline`(poller: PollerChoice) async throws {
        let handler = PaddedReplies()
        try await EchoHandler.serve(handler, { $0.poller = poller }) { server in
            let client = try RawClient(port: server.address.port)
            let other = try RawClient(port: server.address.port)
            // The loop has accepted both connections.
            for client in [client, other] {
                try client.send("GET /0 HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try await client.reply().status == 200)
            }
            try server.holdingLoop {
                // Few enough for the smallest socket buffers, because no reply is read yet.
                try client.send(String(repeating: Self.request, count: 300))
                try other.send("GET /marker HTTP/1.1\r\nHost: h\r\n\r\n")
            }
            #expect(try await other.reply().text == "GET /marker ")
            #expect(handler.countBeforeMarker.load(ordering: .relaxed) < 100)
            for _ in 0..<300 { _ = try await client.reply() }
        }
    }

    @Test func `a peer that sends but does not read is disconnected after the idle timeout`() async throws {
        let clock = ManualClock()
        try await EchoHandler.serve(PaddedReplies(), { $0.monotonic = clock }) { server in
            let client = try RawClient(port: server.address.port)
            let id = try await firstConnection(of: server, client)
            // The system's buffers are full when the server has bytes that it cannot send.
            while await server.onLoop({ $0.connection(id)?.output.isEmpty ?? false }), !Task.isCancelled {
                try client.send(String(repeating: Self.request, count: 100))
            }
            // Bytes that the system moves meanwhile count as reading, so the end may come a little later.
            var steps = 0
            while steps < 40, await server.onLoop({ $0.connection(id) != nil }) {
                steps += 1
                clock.advance(by: .seconds(20))
                await server.passTurn()
                // Fails once the server has closed the connection, as it should.
                try? client.send("GET ")
                await server.passTurn()
            }
            let isGone = await server.onLoop { $0.connection(id) == nil }
            #expect(isGone, "\(steps) steps")
        }
    }

    /// The number of the connection of `client`, which must be the only one.
    private func firstConnection(of server: HTTPServer, _ client: RawClient) async throws -> UInt64 {
        try client.send("GET /0 HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try await client.reply().status == 200)
        return 1
    }
}

import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Keeps the exchanges of `/later`, and answers `/large` with more than the system buffers.
private final class Keeper: ExchangeHandler {
    let kept = Mutex<[Exchange]>([])

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        switch request.pathText {
        case "/later":
            kept.withLock { $0.append(exchange) }
            return nil
        case "/large": return Reply(status: .ok, body: .bytes([UInt8](repeating: 1, count: 16 << 20)))
        default: return EchoHandler.reply(to: request)
        }
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }
    func finished(_ record: ExchangeRecord) {}
}

@Suite("A loop at rest", .oneMinute)
struct RestTests {
    /// Whether a loop whose only client has ended its sending side always has something to do.
    private func isBusy(_ server: HTTPServer) async -> Bool {
        while await server.onLoop({ !$0.connections.values.contains { $0.hasPeerEnded } }), !Task.isCancelled {}
        return await isAlwaysReady(server)
    }

    /// Whether the loop's poller reports an event each time. The job that asks it can be reported too, but not always.
    private func isAlwaysReady(_ server: HTTPServer) async -> Bool {
        for _ in 0..<1_000 where await server.onLoop({ $0.poller.wait(timeout: 0).isEmpty }) { return false }
        return true
    }

    @Test(arguments: EngineTests.pollers)
    func `a client that has ended its sending side while its reply is pending costs nothing`(poller: PollerChoice)
        async throws
    {
        let keeper = Keeper()
        try await EchoHandler.serve(keeper, { $0.poller = poller }) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n")
            client.finishSending()
            #expect(await !isBusy(server))
            keeper.kept.withLock { $0.first }?.complete(Reply(status: .created))
            #expect(try await client.reply().status == 201)
        }
    }

    @Test(arguments: EngineTests.pollers)
    func `a slow reader that has ended its sending side costs nothing`(poller: PollerChoice) async throws {
        try await EchoHandler.serve(Keeper(), { $0.poller = poller }) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
            client.finishSending()
            // The end is not read while so much waits for the client.
            while await server.onLoop({ !$0.connections.values.contains { $0.interest == .write } }), !Task.isCancelled
            {}
            #expect(await !isAlwaysReady(server))
            #expect(try await client.reply().body.count == 16 << 20)
        }
    }

    @Test func `a client that has sent more than is read while its reply is pending, and left, costs nothing`()
        async throws
    {
        let keeper = Keeper()
        try await EchoHandler.serve(keeper) { server in
            let client = try RawClient(port: server.address.port)
            let more = "GET /more HTTP/1.1\r\nHost: h\r\n\r\n"
            try client.send("GET /later HTTP/1.1\r\nHost: h\r\n\r\n" + String(repeating: more, count: 16_000))
            client.finishSending()
            while await server.onLoop({ $0.connections.values.contains { $0.interest.contains(.read) } }),
                !Task.isCancelled
            {}
            #expect(await !isAlwaysReady(server))
            keeper.kept.withLock { $0.first }?.complete(Reply(status: .created))
            #expect(try await client.reply().status == 201)
        }
    }
}

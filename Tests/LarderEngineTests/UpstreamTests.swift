import LarderHTTP
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Sends each request on to a server on this machine and answers with its status, or with 502.
private final class Forwarder: ExchangeHandler {
    private final class Receiver: UpstreamReceiver {
        private let exchange: Exchange
        private var status = Status.badGateway

        init(_ exchange: Exchange) { self.exchange = exchange }

        func received(_ event: UpstreamEvent) {
            switch event {
            case .head(let head): status = head.status
            case .content: break
            case .end: exchange.complete(Reply(status: status))
            case .failed: exchange.complete(Reply(status: .badGateway))
            }
        }
    }

    private let address: UpstreamAddress

    init(_ server: RawServer) throws { address = try UpstreamAddress(host: "127.0.0.1", port: server.port) }

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        let bytes = request.head + Array("\r\n\r\n".utf8) + request.body
        _ = exchange.loop.send(UpstreamRequest(method: request.method, bytes: bytes), to: address, Receiver(exchange))
        return nil
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }

    func finished(_ record: ExchangeRecord) {}
}

@Suite("Connections to other servers", .oneMinute)
struct UpstreamTests {
    private static let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    @Test(arguments: EngineTests.pollers)
    func `a POST whose connection the server closes before it is written is sent on another one`(poller: PollerChoice)
        async throws
    {
        let other = try RawServer()
        try await EchoHandler.serve(Forwarder(other), { $0.poller = poller }) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
            var peer: RawClient? = try await other.next()
            _ = try await peer?.read(until: "\r\n\r\n")
            try peer?.send(Self.reply)
            #expect(try await client.reply().status == 200)
            // In one turn the request arrives, and the idle connection ends.
            try server.holdingLoop {
                try client.send("POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
                _ = peer.take()
            }
            let next = try await other.next()
            let request = String(decoding: try await next.read(until: "hi"), as: UTF8.self)
            #expect(request.hasPrefix("POST /second "))
            try next.send(Self.reply)
            #expect(try await client.reply().status == 200)
        }
    }

    @Test func `a POST that was written is not sent again`() async throws {
        let other = try RawServer()
        try await EchoHandler.serve(Forwarder(other)) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
            var peer: RawClient? = try await other.next()
            _ = try await peer?.read(until: "\r\n\r\n")
            try peer?.send(Self.reply)
            #expect(try await client.reply().status == 200)
            try client.send("POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
            _ = try await peer?.read(until: "hi")
            _ = peer.take()
            #expect(try await client.reply().status == 502)
        }
    }

    @Test func `an idle connection to another server ends, and then the loop waits without a timer`() async throws {
        let other = try RawServer()
        let clock = ManualClock()
        try await EchoHandler.serve(Forwarder(other), { $0.monotonic = clock }) { server in
            var client: RawClient? = try RawClient(port: server.address.port)
            try client?.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let peer = try await other.next()
            _ = try await peer.read(until: "\r\n\r\n")
            try peer.send(Self.reply)
            #expect(try await client?.reply().status == 200)
            _ = client.take()
            await reached { await server.onLoop { $0.connections.isEmpty } }
            clock.advance(by: .seconds(5))
            await server.passTurn()
            #expect(!peer.hasNews)
            clock.advance(by: .seconds(15))
            await server.passTurn()
            #expect(await server.onLoop { $0.untilNextStep } == nil)
            #expect(peer.hasNews)
        }
    }

    @Test func `a request that is repeated has a new connection, because all idle ones may be lost`() async throws {
        let other = try RawServer()
        try await EchoHandler.serve(Forwarder(other)) { server in
            var (clients, peers): ([RawClient], [RawClient]) = ([], [])
            for _ in 0..<2 {
                let client = try RawClient(port: server.address.port)
                try client.send("GET /first HTTP/1.1\r\nHost: h\r\n\r\n")
                clients.append(client)
                peers.append(try await other.next())
                _ = try await peers.last?.read(until: "\r\n\r\n")
            }
            for (client, peer) in zip(clients, peers) {
                try peer.send(Self.reply)
                #expect(try await client.reply().status == 200)
            }
            try clients[0].send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n")
            // The one that became idle last.
            _ = try await peers[1].read(until: "\r\n\r\n")
            peers.removeLast()
            let next = try await other.next()
            _ = try await next.read(until: "GET /second HTTP/1.1\r\nHost: h\r\n\r\n")
            try next.send(Self.reply)
            #expect(try await clients[0].reply().status == 200)
        }
    }
}

import LarderHTTP
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

    func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict { .proceed }

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
}

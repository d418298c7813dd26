import LarderHTTP
import LarderTLS
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderEngine

/// Answers each request with a tunnel to a server.
private final class Tunneller: ExchangeHandler {
    private final class Receiver: UpstreamReceiver {
        private let exchange: Exchange
        var task: UpstreamExchange?

        init(_ exchange: Exchange) { self.exchange = exchange }

        func received(_ event: UpstreamEvent) {
            guard case .head = event, let task else { return }
            var head = ReplyHead(.switchingProtocols)
            head.append("Connection", "Upgrade")
            head.append("Upgrade", "x")
            exchange.complete(Reply(head, body: .tunnel(TunnelEnd(task))))
        }
    }

    private let address: UpstreamAddress

    init(_ address: UpstreamAddress) { self.address = address }

    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        let receiver = Receiver(exchange)
        let bytes = request.head + Array("\r\n\r\n".utf8)
        let upgrade = UpstreamRequest(method: request.method, bytes: bytes, isUpgrade: true)
        receiver.task = exchange.loop.send(upgrade, to: address, receiver)
        return nil
    }

    func rejected(_ rejection: Rejection) -> Reply { Reply(status: rejection.status) }

    func finished(_ record: ExchangeRecord) {}
}

@Suite("A tunnel to a server with https", .oneMinute)
struct SecureTunnelTests {
    @Test func `encrypted bytes that the server does not read are written when it does, whatever happens meanwhile`()
        async throws
    {
        let now = SystemWallClock().now
        let authority = try TLSAuthority(name: "Test Authority", now: now)
        let identity = try authority.issue(hosts: ["127.0.0.1"], now: now)
        var settings = TLSSettings()
        settings.roots = .only(authority.certificate.der)
        let listener = try RawServer(receiveBufferBytes: 4_096)
        let address = try UpstreamAddress(host: "127.0.0.1", port: listener.port, tls: try TLSClient(settings))
        try await EchoHandler.serve(Tunneller(address)) { server in
            let client = try RawClient(port: server.address.port)
            try client.send("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
            let peer = try await listener.next()
            let session = try TLSServer { _ in identity }.session()
            var plain: [UInt8] = []
            while !plain.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                let bytes = try await peer.read(count: 1)
                try session.receive(bytes.span, into: &plain)
                try peer.send(session.takeOutput())
            }
            let answer = Array("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n".utf8)
            try session.send(answer.span)
            try peer.send(session.takeOutput())
            _ = try await client.read(until: "\r\n\r\n")
            // In pieces, until one is encrypted and cannot be written completely.
            var sentCount = 0
            while await !isWriting(server) {
                try client.send([UInt8](repeating: 0x61, count: 1 << 10))
                sentCount += 1 << 10
                await server.passTurn()
            }
            // As after each piece that arrives from the server.
            try #require(await isWriting(server) { $0.updateInterest() })
            plain = []
            while plain.count < sentCount {
                let bytes = try await peer.read(count: 1)
                try session.receive(bytes.span, into: &plain)
            }
            await server.passTurn()
            #expect(await !isWriting(server))
        }
    }

    /// Whether the tunnel waits until the server accepts more.
    private func isWriting(
        _ server: HTTPServer,
        after body: @escaping @Sendable (UpstreamConnection) -> Void = { _ in }
    ) async -> Bool {
        await server.onLoop { loop in
            guard case .tunnel(let upstream)? = loop.connections.values.first?.mode else { return false }
            body(upstream)
            return upstream.interest.contains(.write)
        }
    }
}

import Glibc
import LarderHTTP
import LarderTLS
import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

/// A caller that has encrypted its last bytes must make the loop wait until the socket takes them: the loop waits for the server alone
/// otherwise. The socket takes few bytes at a time here, and the loop is used by nothing else that could wake it.
@Suite("Socket transport: encrypted bytes that the socket has not taken", .oneMinute)
struct EncryptedRestTests {
    private let content = (0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }

    /// Limits what the client's socket of the connection to a port of this machine takes.
    private func limitSending(to port: Int) throws {
        var found = false
        for descriptor in Int32(3)..<4_096 {
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = unsafe withUnsafeMutableBytes(of: &address) { raw in
                unsafe getpeername(descriptor, raw.assumingMemoryBound(to: sockaddr.self).baseAddress, &size)
            }
            guard isConnected == 0, address.sin_family == sa_family_t(AF_INET),
                in_port_t(bigEndian: address.sin_port) == in_port_t(port)
            else { continue }
            var bytes: Int32 = 1
            found =
                unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size)) == 0
        }
        try #require(found)
    }

    private func transport(_ server: SecureServer) -> SocketTransport {
        var configuration = SocketTransport.Configuration()
        configuration.tls = server.settings
        return SocketTransport(
            configuration,
            clock: server.clock,
            wallClock: server.clock,
            resolver: .shared,
            loop: SocketLoop()
        )
    }

    private func serve(_ peer: WirePeer) async throws {
        #expect(try await peer.read(count: content.count) == content)
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
    }

    @Test func `the last piece of an upload arrives`() async throws {
        let server = try SecureServer(receiveBufferBytes: 4_096)
        let transport = transport(server)
        let (pieces, feed) = AsyncStream<[UInt8]>.makeStream()
        var request = TransportRequest(method: .put, url: server.url())
        request.upload = RequestBody(pieces, length: content.count)
        let upload = request
        async let reply = transport.send(upload)
        let peer = try await server.wire.accept(server.tls)
        _ = try await peer.readHead()
        try limitSending(to: server.wire.port)
        feed.yield(content)
        feed.finish()
        try await serve(peer)
        #expect(try await reply.status == .noContent)
    }

    @Test func `a request over a kept connection arrives`() async throws {
        let server = try SecureServer(receiveBufferBytes: 4_096)
        let transport = transport(server)
        async let first = transport.send(TransportRequest(url: server.url()))
        let peer = try await server.wire.accept(server.tls)
        _ = try await peer.readHead()
        await peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        _ = try await first
        try limitSending(to: server.wire.port)
        async let second = transport.send(TransportRequest(method: .put, url: server.url(), body: content))
        _ = try await peer.readHead()
        try await serve(peer)
        #expect(try await second.status == .noContent)
    }

    @Test func `a message of a WebSocket arrives`() async throws {
        let server = try SecureServer(receiveBufferBytes: 4_096)
        async let connecting = transport(server).webSockets().connect(server.url("wss"))
        let peer = try await server.wire.accept(server.tls)
        try await peer.acceptWebSocket()
        let socket = try await connecting
        try limitSending(to: server.wire.port)
        try await socket.send(.binary(content))
        #expect(try await peer.readFrame().payload == content)
    }
}

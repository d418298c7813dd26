import LarderTime
import SDKTestSupport
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

@Suite("WebSocket limits", .oneMinute)
struct WebSocketBoundsTests {
    @Test func `a second address is tried after 250 ms beside a first one that does not answer`() async throws {
        let silent = try SilentAddress()
        let server = try WireServer()
        let addresses = [silent.address, try SilentAddress.address(of: server)]
        let clock = ManualClock()
        let loop = SocketLoop(isStepped: true)
        var configuration = SocketTransport.Configuration()
        configuration.proxies = .none
        let resolver = HostResolver { _, _ in .success(addresses) }
        let client = SocketTransport(configuration, clock: clock, resolver: resolver, loop: loop).webSockets()
        let connecting = Task { try await client.connect("ws://larder.test/") }
        await reached { loop.step().isActive }
        try #require(loop.step().timeLeft == .milliseconds(250))
        clock.advance(by: .milliseconds(250))
        let stepping = Task {
            while !Task.isCancelled {
                _ = loop.step()
                await Task.yield()
            }
        }
        defer { stepping.cancel() }
        let peer = try await server.accept()
        try await peer.acceptWebSocket()
        let socket = try await connecting.value
        await peer.send(text("hello"))
        #expect(try await socket.receive() == .text("hello"))
        withExtendedLifetime(silent) {}
    }

    @Test func `messages without content are bounded too`() {
        var inbox = WebSocketInbox()
        for _ in 0..<1_000 { inbox.put(.text("")) }
        #expect(inbox.byteCount >= 16_000)
        for _ in 0..<1_000 { _ = inbox.take() }
        #expect(inbox.byteCount == 0)
    }
}

import LarderTesting
import LarderTime
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
        let connector = SocketWebSocketConnector(
            clock: clock,
            random: SeededGenerator(seed: 1),
            resolver: HostResolver { _, _ in .success(addresses) },
            loop: loop
        )
        let connecting = Task {
            try await connector.connect(
                WebSocketClient.Request(url: "ws://larder.test/"),
                WebSocketClient.Configuration()
            )
        }
        while !loop.step().isActive, !Task.isCancelled { await Task.yield() }
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

import LarderTesting
import TestSupport
import Testing

@testable import LarderTransport

@Suite("WebSocket limits", .oneMinute)
struct WebSocketBoundsTests {
    @Test func `a second address is tried after 250 ms beside a first one that does not answer`() async throws {
        let host = try HostWithSilentAddress()
        let client = host.transport.webSockets()
        let connecting = Task { try await client.connect("ws://larder.test/") }
        let stepping = try await host.passAttemptDelay()
        defer { stepping.cancel() }
        let peer = try await host.server.accept()
        try await peer.acceptWebSocket()
        let socket = try await connecting.value
        await peer.send(text("hello"))
        #expect(try await socket.receive() == .text("hello"))
    }

    @Test func `messages without content are bounded too`() {
        var inbox = WebSocketInbox()
        for _ in 0..<1_000 { inbox.put(.text("")) }
        #expect(inbox.byteCount >= 16_000)
        for _ in 0..<1_000 { _ = inbox.take() }
        #expect(inbox.byteCount == 0)
    }
}

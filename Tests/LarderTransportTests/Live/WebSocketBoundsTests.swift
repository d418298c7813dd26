import LarderTesting
import LarderTime
import Synchronization
import TestSupport
import Testing

@testable import LarderTransport

/// A random source that counts the drawn numbers.
private struct Draws: RandomNumberGenerator, Sendable {
    private final class Counter: Sendable { let count = Mutex<UInt64>(0) }

    private let counter = Counter()

    var count: UInt64 { counter.count.withLock { $0 } }

    func next() -> UInt64 {
        counter.count.withLock { count in
            count += 1
            return count
        }
    }
}

@Suite("WebSocket limits", .oneMinute)
struct WebSocketBoundsTests {
    @Test func `an address that does not answer leaves time for the next one`() async throws {
        let dead = try WireServer()
        let server = try WireServer()
        func address(_ server: WireServer) throws -> SocketCall.Address {
            try SocketCall.resolve("127.0.0.1", port: server.port, isNumeric: true).get()[0]
        }
        // It never accepts: when its queue is full, the system does not answer further connections.
        let crowd = try (0..<130).map { _ in try SocketCall.connect(try address(dead)).get() }
        defer { for descriptor in crowd { SocketCall.shut(descriptor) } }
        let addresses = [try address(dead), try address(server)]
        let clock = ManualClock()
        let draws = Draws()
        let connector = SocketWebSocketConnector(
            clock: clock,
            random: draws,
            resolver: HostResolver { _, _ in .success(addresses) }
        )
        let connecting = Task {
            try await connector.connect(
                WebSocketClient.Request(url: "ws://larder.test/"),
                WebSocketClient.Configuration()
            )
        }
        // Each attempt draws the sixteen bytes of its key after its deadline was set.
        while draws.count < 16, !Task.isCancelled { await Task.yield() }
        clock.advance(by: .milliseconds(7_500))
        while draws.count < 32, !Task.isCancelled { await Task.yield() }
        let peer = try await server.accept()
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

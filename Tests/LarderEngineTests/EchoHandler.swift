import Glibc
import LarderHTTP
import LarderHTTPWire
import LarderTime
import Synchronization

@testable import LarderEngine

/// Echoes requests as method, target and body, and WebSocket messages unchanged.
final class EchoHandler: ExchangeHandler {
    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        if request.isWebSocketUpgrade { return .webSocket(WebSocketAcceptance(handler: Messages())) }
        return Self.reply(to: request)
    }

    /// The method, the target and the body of a request.
    static func reply(to request: Request) -> Reply {
        let text = "\(request.method) \(request.targetText) \(String(decoding: request.body, as: UTF8.self))"
        return Reply(status: .ok, body: .bytes(Array(text.utf8)))
    }

    func rejected(_ rejection: Rejection) -> Reply {
        Reply(status: rejection.status, body: .bytes(Array(rejection.detail.utf8)))
    }

    func finished(_ record: ExchangeRecord) {}

    final class Messages: ChannelHandler {
        private let handle = Mutex<ChannelHandle?>(nil)

        func opened(_ handle: ChannelHandle) { self.handle.withLock { $0 = handle } }
        func received(text: [UInt8]) { handle.withLock { $0 }?.send(text: text) }
        func received(binary: [UInt8]) { handle.withLock { $0 }?.send(binary: binary) }
        func closed(_ ending: WebSocketEnding) {}
    }

    /// Serves while `body` runs.
    static func serve(
        _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (Int) async throws -> Void
    ) async throws {
        try await serve(EchoHandler(), change) { server in try await body(server.address.port) }
    }

    /// Serves with another handler.
    static func serve(
        _ handler: any ExchangeHandler,
        _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (HTTPServer) async throws -> Void
    ) async throws {
        var configuration = ServerConfiguration()
        // Manual time: on a loaded machine a connection may wait for a processor without a timeout.
        configuration.monotonic = ManualClock()
        change(&configuration)
        let server = try HTTPServer(configuration, handler: handler)
        do {
            try await body(server)
        } catch {
            await server.stop(grace: .zero)
            throw error
        }
        await server.stop(grace: .zero)
    }
}

extension HTTPServer {
    /// Blocks the first loop while `body` runs, so that its next turn sees everything that `body` has sent.
    func holdingLoop(_ body: () throws -> Void) throws {
        let (isHeld, isOver) = (Signal(), Signal())
        loops[0].execute {
            isHeld.set()
            isOver.wait()
        }
        isHeld.wait()
        defer { isOver.set() }
        try body()
    }

    /// Runs `body` on a loop's thread and returns its result.
    func onLoop<Value: Sendable>(
        at index: Int = 0,
        _ body: @escaping @Sendable (EventLoop) -> Value
    ) async -> Value {
        let loop = loops[index]
        return await withCheckedContinuation { continuation in
            loop.execute { continuation.resume(returning: body(loop)) }
        }
    }

    /// Returns when every loop has finished a turn that began after this call, with the check of its deadlines.
    func passTurn() async {
        // The first job may run in a turn that began earlier; a turn runs its jobs before it checks deadlines.
        for index in loops.indices {
            for _ in 0..<3 { await onLoop(at: index) { _ in } }
        }
    }
}

/// A flag that one thread sets and another waits for.
final class Signal: Sendable {
    private let isSet = Atomic<Bool>(false)

    func set() { isSet.store(true, ordering: .releasing) }

    func wait() { while !isSet.load(ordering: .acquiring) { sched_yield() } }
}

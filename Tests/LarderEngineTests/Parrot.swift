import LarderHTTP
import LarderTime
import LarderWebSocket
import Synchronization

@testable import LarderEngine

/// Repeats what it is told: a request as its method, target and body, a message as it came.
final class Parrot: ExchangeHandler {
    func handle(_ request: Request, _ exchange: Exchange) -> Reply? {
        if request.isWebSocketUpgrade { return .webSocket(WebSocketAcceptance(handler: Messages())) }
        return Self.reply(to: request)
    }

    /// A request as its method, target and body.
    static func reply(to request: Request) -> Reply {
        let text = "\(request.method) \(request.targetText) \(String(decoding: request.body, as: UTF8.self))"
        return .response(Response(status: .ok, body: .bytes(Array(text.utf8))))
    }

    func refused(_ refusal: Refusal) -> Response {
        Response(status: refusal.status, body: .bytes(Array(refusal.detail.utf8)))
    }

    var wantsHeads: Bool { false }

    func began(_ request: Request, _ exchange: Exchange) -> HeadVerdict { .proceed }

    var wantsRecords: Bool { false }

    func finished(_ record: ExchangeRecord) {}

    final class Messages: WebSocketHandler {
        private let handle = Mutex<WebSocketHandle?>(nil)

        func opened(_ handle: WebSocketHandle) { self.handle.withLock { $0 = handle } }
        func received(text: [UInt8]) { handle.withLock { $0 }?.send(text: text) }
        func received(binary: [UInt8]) { handle.withLock { $0 }?.send(binary: binary) }
        func closed(code: UInt16?, reason: String) {}
    }

    /// Serves while `body` runs.
    static func serve(
        _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (Int) async throws -> Void
    ) async throws {
        try await serve(Parrot(), change) { server in try await body(server.address.port) }
    }

    /// Serves with another handler.
    static func serve(
        _ handler: any ExchangeHandler,
        _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (HTTPServer) async throws -> Void
    ) async throws {
        var configuration = ServerConfiguration()
        // A connection may have to wait its turn while other tests have the processors: no time passes for it.
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

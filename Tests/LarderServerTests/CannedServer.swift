import Glibc
import Synchronization
import TestSupport

/// A server on a free port that reads one request of its only connection, sends chosen bytes, and closes.
///
/// It works on a thread of its own, because the client under test blocks.
final class CannedServer: Sendable {
    private final class Exchange: Sendable {
        let listener: Int32
        let reply: [UInt8]
        let closes: Bool
        let readsRequest: Bool
        let request = Mutex<[UInt8]?>(nil)
        let isOver = Mutex(false)

        init(_ listener: Int32, _ reply: [UInt8], closes: Bool, readsRequest: Bool) {
            self.listener = listener
            self.reply = reply
            self.closes = closes
            self.readsRequest = readsRequest
        }
    }

    let port: Int
    private let exchange: Exchange

    var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameters:
    ///   - closes: whether the connection is closed after the reply; otherwise when this object is released.
    ///   - readsRequest: whether the request is read before the reply is sent.
    init(_ reply: String, closes: Bool = true, readsRequest: Bool = true) throws {
        let (listener, port) = try LoopbackSocket.bound(backlog: 1)
        self.port = port
        exchange = Exchange(listener, Array(reply.utf8), closes: closes, readsRequest: readsRequest)
        Self.start(exchange)
    }

    deinit { exchange.isOver.withLock { $0 = true } }

    /// The bytes of the request. The client has its reply, so they have arrived.
    func received() -> [UInt8] { exchange.request.withLock { $0 } ?? [] }

    private static func start(_ exchange: Exchange) {
        let argument = unsafe Unmanaged.passRetained(exchange).toOpaque()
        var thread = pthread_t()
        let result = unsafe pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let exchange = unsafe Unmanaged<Exchange>.fromOpaque(argument).takeRetainedValue()
                CannedServer.serve(exchange)
                return nil
            },
            argument
        )
        precondition(result == 0, "Starting a thread failed: \(result)")
        pthread_detach(thread)
    }

    private static func serve(_ exchange: Exchange) {
        let peer = accept(exchange.listener, nil, nil)
        close(exchange.listener)
        guard peer >= 0 else { return }
        defer { close(peer) }
        var request: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while exchange.readsRequest, !isComplete(request) {
            let count = unsafe recv(peer, &chunk, chunk.count, 0)
            guard count > 0 else { return }
            request.append(contentsOf: chunk[..<count])
        }
        exchange.request.withLock { $0 = request }
        var reply = exchange.reply
        _ = unsafe send(peer, &reply, reply.count, 0)
        var waiting = pollfd(fd: peer, events: Int16(POLLIN), revents: 0)
        while !exchange.closes, !exchange.isOver.withLock({ $0 }), unsafe poll(&waiting, 1, 5) == 0 {}
    }

    private static func isComplete(_ request: [UInt8]) -> Bool {
        let text = String(decoding: request, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return false }
        let head = text[..<end.lowerBound]
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }?.dropFirst(16)
        return text[end.upperBound...].utf8.count >= length.flatMap { Int($0) } ?? 0
    }
}

import LarderEngine

/// An event stream of the server, passed on as it arrives.
///
/// A client that reads too slowly is disconnected by the engine. A stream that is released without having been opened cancels its request.
///
/// `@unchecked Sendable`: the relay and the client's connection, which belong to one loop, use it there; `deinit` runs when nobody refers to it
/// any more.
final class ProxyEventStream: ChannelHandler, @unchecked Sendable {
    /// The maximum number of bytes that are kept until the client's side is open, for example while a gate holds the reply. A stream with
    /// more is cancelled.
    private static let earlyBytesMaximum = 1 << 20

    private let task: UpstreamExchange?
    private var handle: ChannelHandle?
    /// Bytes that arrived before the client's stream was open.
    private var early: [UInt8] = []
    private var hasEnded = false
    private var hasFailed = false

    init(_ task: UpstreamExchange?) { self.task = task }

    deinit { if handle == nil { task?.cancel() } }

    /// The server sends its own comments.
    var ownsHeartbeat: Bool { true }

    func opened(_ handle: ChannelHandle) {
        self.handle = handle
        handle.send(exchange(&early, with: []))
        if hasFailed { handle.abort() } else if hasEnded { handle.close() }
    }

    func closed(_ ending: WebSocketEnding) { task?.cancel() }

    func received(_ bytes: [UInt8]) {
        if let handle { return handle.send(bytes) }
        guard !hasFailed else { return }
        hasFailed = early.count + bytes.count > Self.earlyBytesMaximum
        if hasFailed { task?.cancel() } else { early += bytes }
    }

    func ended() {
        hasEnded = true
        handle?.close()
    }

    /// The client's stream breaks off too.
    func failed() {
        hasFailed = true
        handle?.abort()
    }
}

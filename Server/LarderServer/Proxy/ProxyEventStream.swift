import LarderEngine
import Synchronization

/// An event stream of the server, passed on as it arrives. The relay calls it on the loop, in the order of the bytes.
///
/// A client that reads too slowly is disconnected by the engine. A stream that is released without having been opened cancels its request.
final class ProxyEventStream: ChannelHandler {
    private struct State {
        var handle: ChannelHandle?
        /// Bytes that arrived before the client's stream was open.
        var early: [UInt8] = []
        var hasEnded = false
        var hasFailed = false
    }

    /// The maximum number of bytes that are kept until the client's side is open, for example while a gate holds the reply. A stream with
    /// more is cancelled.
    private static let earlyBytesMaximum = 1 << 20

    private let task: UpstreamExchange?
    private let state = Mutex(State())

    init(_ task: UpstreamExchange?) { self.task = task }

    deinit { if state.withLock({ $0.handle == nil }) { task?.cancel() } }

    /// The server sends its own comments.
    var ownsHeartbeat: Bool { true }

    func opened(_ handle: ChannelHandle) {
        let (early, hasEnded, hasFailed) = state.withLock { state in
            state.handle = handle
            return (exchange(&state.early, with: []), state.hasEnded, state.hasFailed)
        }
        handle.send(early)
        if hasFailed { handle.abort() } else if hasEnded { handle.close() }
    }

    func closed(_ ending: WebSocketEnding) { task?.cancel() }

    func received(_ bytes: [UInt8]) {
        let (handle, isTooMuch) = state.withLock { state -> (ChannelHandle?, Bool) in
            guard state.handle == nil, !state.hasFailed else { return (state.handle, false) }
            state.hasFailed = state.early.count + bytes.count > Self.earlyBytesMaximum
            if !state.hasFailed { state.early += bytes }
            return (nil, state.hasFailed)
        }
        handle?.send(bytes)
        if isTooMuch { task?.cancel() }
    }

    func ended() {
        let handle = state.withLock { state in
            state.hasEnded = true
            return state.handle
        }
        handle?.close()
    }

    /// The client's stream breaks off too.
    func failed() {
        let handle = state.withLock { state in
            state.hasFailed = true
            return state.handle
        }
        handle?.abort()
    }
}

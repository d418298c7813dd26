import LarderEngine
import LarderTime
import LarderWebSocket
import Synchronization

/// What a relay passes bytes to after the head of a stream. Called on the loop, in the order of the bytes.
///
/// A channel that is released without having been opened cancels its request.
protocol ProxyChannel: AnyObject, Sendable {
    func received(_ bytes: [UInt8])
    /// The server has ended the stream.
    func ended()
    /// The server's stream broke off.
    func failed()
}

extension ProxyChannel {
    /// The maximum number of bytes that are kept until the client's side is open, for example while a gate holds the reply. A
    /// stream with more is cancelled.
    static var earlyBytesMaximum: Int { 1 << 20 }
}

/// An event stream of the server, passed on as it arrives.
///
/// A client that reads too slowly is disconnected by the engine.
final class ProxyEventStream: EventStreamHandler, ProxyChannel {
    private struct State {
        var handle: EventStreamHandle?
        /// Bytes that arrived before the client's stream was open.
        var early: [UInt8] = []
        var hasEnded = false
        var hasFailed = false
    }

    private let task: UpstreamExchange?
    private let state = Mutex(State())

    init(_ task: UpstreamExchange?) { self.task = task }

    deinit { if state.withLock({ $0.handle == nil }) { task?.cancel() } }

    /// The server sends its own comments.
    var ownsHeartbeat: Bool { true }

    func opened(_ handle: EventStreamHandle) {
        let (early, hasEnded, hasFailed) = state.withLock { state in
            state.handle = handle
            return (exchange(&state.early, with: []), state.hasEnded, state.hasFailed)
        }
        handle.send(early)
        if hasFailed { handle.abort() } else if hasEnded { handle.finish() }
    }

    func closed() { task?.cancel() }

    func received(_ bytes: [UInt8]) {
        let (handle, isTooMuch) = state.withLock { state -> (EventStreamHandle?, Bool) in
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
        handle?.finish()
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

/// A WebSocket between a client and the server: messages are passed on in both directions.
final class ProxyWebSocket: WebSocketHandler, ProxyChannel {
    private struct State {
        var handle: WebSocketHandle?
        var parser = WebSocketParser(role: .client)
        /// What arrived before the client's socket was open.
        var early: [WebSocketEvent] = []
        /// The bytes that `early` was made from.
        var earlyBytes = 0
        var isOver = false
        var random = SystemRandomNumberGenerator()
    }

    private let task: UpstreamExchange
    private let state = Mutex(State())

    init(_ task: UpstreamExchange) { self.task = task }

    deinit { if state.withLock({ $0.handle == nil }) { task.cancel() } }

    // MARK: From the client

    func opened(_ handle: WebSocketHandle) {
        let early = state.withLock { state in
            state.handle = handle
            return exchange(&state.early, with: [])
        }
        for event in early { passOn(event, to: handle) }
        if state.withLock({ $0.isOver }) { handle.abort() }
    }

    func received(text: [UInt8]) { send(.text, text) }

    func received(binary: [UInt8]) { send(.binary, binary) }

    /// The server sees what the client did: a close frame with its code, one without a code, or none.
    func closed(_ ending: WebSocketEnding) {
        if case .closed(let code, let reason) = ending {
            let code = code.map { WebSocketCloseCode(rawValue: $0) }
            send(.close, WebSocketEncoder.closePayload(code, reason))
        }
        task.finish()
    }

    private func send(_ opcode: WebSocketEncoder.Opcode, _ payload: [UInt8]) {
        var frame: [UInt8] = []
        // The mask must be unpredictable (RFC 6455 §10.3).
        let mask: UInt32 = state.withLock { $0.random.next() }
        WebSocketEncoder.append(opcode, payload, mask: mask, to: &frame)
        task.send(frame)
    }

    // MARK: From the server

    func received(_ bytes: [UInt8]) {
        let (events, handle, isTooMuch) = state.withLock { state -> ([WebSocketEvent], WebSocketHandle?, Bool) in
            guard !state.isOver else { return ([], nil, false) }
            var events: [WebSocketEvent] = []
            state.parser.receive(bytes.span, &events)
            if state.handle == nil {
                state.earlyBytes += bytes.count
                state.isOver = state.earlyBytes > Self.earlyBytesMaximum
                if !state.isOver { state.early += events }
            }
            return (events, state.handle, state.isOver)
        }
        for event in events {
            if case .ping(let payload) = event { send(.pong, payload) }
            if let handle { passOn(event, to: handle) }
        }
        if isTooMuch { task.cancel() }
    }

    private func passOn(_ event: WebSocketEvent, to handle: WebSocketHandle) {
        switch event {
        case .text(let text): handle.send(text: text)
        case .binary(let binary): handle.send(binary: binary)
        // Each side answers the pings of its own connection.
        case .ping, .pong: break
        case .failed(let code, let reason): handle.close(code: code.rawValue, reason: reason)
        case .close(let code, let reason): handle.close(code: code?.rawValue, reason: reason)
        }
    }

    func ended() {
        let handle = state.withLock { state in
            state.isOver = true
            return state.handle
        }
        handle?.abort()
    }

    func failed() { ended() }
}

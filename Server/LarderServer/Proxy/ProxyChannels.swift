import LarderEngine
import LarderTime
import LarderWebSocket
import Synchronization

/// An event stream of the server, passed on as it arrives.
///
/// A client that reads too slowly is disconnected by the engine.
final class ProxyEventStream: EventStreamHandler {
    private struct State {
        var handle: EventStreamHandle?
        /// Bytes that arrived before the client's stream was open.
        var early: [UInt8] = []
        var hasEnded = false
        var hasFailed = false
    }

    private let task: UpstreamTask?
    private let state = Mutex(State())

    init(_ task: UpstreamTask?) { self.task = task }

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
        let handle = state.withLock { state in
            if state.handle == nil { state.early += bytes }
            return state.handle
        }
        handle?.send(bytes)
    }

    func ended() {
        let handle = state.withLock { state in
            state.hasEnded = true
            return state.handle
        }
        handle?.finish()
    }

    /// The server's stream broke off: the client's does too.
    func failed() {
        let handle = state.withLock { state in
            state.hasFailed = true
            return state.handle
        }
        handle?.abort()
    }
}

/// A WebSocket between a client and the server: messages are passed on in both directions.
final class ProxyWebSocket: WebSocketHandler {
    private struct State {
        var handle: WebSocketHandle?
        var parser = WebSocketParser(role: .client)
        /// What arrived before the client's socket was open.
        var early: [WebSocketEvent] = []
        var isOver = false
        var random = SystemRandomNumberGenerator()
    }

    private let task: UpstreamTask
    private let state = Mutex(State())

    init(_ task: UpstreamTask) { self.task = task }

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

    func closed(code: UInt16?, reason: String) {
        if let code { send(.close, WebSocketEncoder.closePayload(WebSocketCloseCode(rawValue: code), reason)) }
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

    /// Called on the loop, in the order of the bytes.
    func received(_ bytes: [UInt8]) {
        let (events, handle) = state.withLock { state -> ([WebSocketEvent], WebSocketHandle?) in
            var events: [WebSocketEvent] = []
            state.parser.receive(bytes.span, &events)
            if state.handle == nil { state.early += events }
            return (events, state.handle)
        }
        for event in events {
            if case .ping(let payload) = event { send(.pong, payload) }
            if let handle { passOn(event, to: handle) }
        }
    }

    private func passOn(_ event: WebSocketEvent, to handle: WebSocketHandle) {
        switch event {
        case .text(let text): handle.send(text: text)
        case .binary(let binary): handle.send(binary: binary)
        // Each side answers the pings of its own connection.
        case .ping, .pong: break
        case .failed(let code, let reason): handle.close(code: code.rawValue, reason: reason)
        case .close(let code, let reason):
            handle.close(code: (code ?? .normal).rawValue, reason: reason)
        }
    }

    func ended() {
        let handle = state.withLock { state in
            state.isOver = true
            return state.handle
        }
        handle?.abort()
    }
}

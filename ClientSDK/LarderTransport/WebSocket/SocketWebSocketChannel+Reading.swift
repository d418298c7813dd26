import LarderHTTPWire
import LarderTLS
import LarderTime

/// Reading and the end of the connection.
extension SocketWebSocketChannel {
    /// Reads available bytes, at most 16 times, so that other connections are served too.
    func read(_ state: inout State) {
        for _ in 0..<16 {
            guard !state.isReadingPaused, let received = state.link?.receive() else { return }
            if !received.bytes.isEmpty { take(&state, received.bytes) }
            switch received.end {
            case nil: if received.isDrained { return }
            case .closed: return ended(&state, "The peer closed the connection.")
            case .failed(let reason): return ended(&state, "The connection broke: \(reason).")
            case .broken(let error): return end(&state, WebSocketError(.interrupted, error.description))
            }
        }
    }

    func take(_ state: inout State, _ bytes: [UInt8]) {
        switch state.phase {
        case .open:
            state.heartbeat.heard(at: clock.uptime)
            var events: [WebSocketEvent] = []
            state.parser.receive(bytes.span, &events)
            for event in events where state.phase == .open && state.failure == nil { handle(&state, event) }
            if state.failure == nil, state.inbox.byteCount > configuration.inboxBytesMaximum, !state.hasSentClose,
                state.phase == .open
            {
                state.isReadingPaused = true
                state.heartbeat.hold()
            }
        case .draining, .over: return
        }
    }

    private func handle(_ state: inout State, _ event: WebSocketEvent) {
        switch event {
        case .text(let text): put(&state, .text(String(decoding: text, as: UTF8.self)))
        case .binary(let bytes): put(&state, .binary(bytes))
        case .ping(let payload):
            // Pongs for a peer that does not read are dropped beyond the limit (RFC 6455 §5.5.3 allows this).
            if !state.hasSentClose, state.link?.pendingCount ?? 0 <= configuration.outputBytesMaximum {
                append(&state, .pong, payload)
            }
        case .pong(let payload): answered(&state, payload)
        case .close(let code, let reason):
            state.closing = WebSocketClient.Close(code: code?.rawValue, reason: reason)
            if !state.hasSentClose { appendClose(&state, code, "") }
            beginDraining(&state, .success(nil))
        case .failed(let code, let reason):
            state.failure = (code, reason)
            guard state.isReaderBusy, !state.hasSentClose else { return failNow(&state) }
            // Nothing can be sent after the close frame, so the reader first takes earlier messages and may reply.
            // Reading is paused meanwhile.
            state.isReadingPaused = true
            state.heartbeat.hold()
            state.deadline = clock.uptime + configuration.closeTimeout
            wakeLoop()
        }
    }

    /// Sends the close frame for a protocol error and ends; does nothing without an error.
    func failNow(_ state: inout State) {
        guard state.phase == .open, let (code, reason) = state.failure else { return }
        state.failure = nil
        if !state.hasSentClose { appendClose(&state, code, reason) }
        beginDraining(&state, .failure(WebSocketError(.protocolError, "The peer violated the protocol: \(reason).")))
    }

    private func put(_ state: inout State, _ message: WebSocketClient.Message) {
        guard !state.hasSentClose else { return }
        state.isReaderBusy = true
        state.inbox.put(message)
    }

    /// A pong answers all earlier pings (RFC 6455 §5.5.3).
    private func answered(_ state: inout State, _ payload: [UInt8]) {
        guard payload.count == 8 else { return }
        let id = payload.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let index = state.pings.firstIndex(where: { $0.id == id }) else { return }
        for ping in state.pings[...index] { ping.pending.finish(.success(())) }
        state.pings.removeFirst(index + 1)
    }

    // MARK: The end

    /// Handles the end of the connection by the peer.
    private func ended(_ state: inout State, _ reason: String) {
        if state.phase == .open, state.hasSentClose { return endClosed(&state) }
        end(&state, WebSocketError(.interrupted, reason))
    }

    private func beginDraining(_ state: inout State, _ end: WebSocketInbox.Received) {
        state.phase = .draining
        state.isReadingPaused = false
        state.deadline = clock.uptime + configuration.closeTimeout
        tellEveryone(&state, end)
        flush(&state)
        wakeLoop()
    }

    /// Ends a connection that was closed in order.
    func endClosed(_ state: inout State) { finish(&state, .success(nil)) }

    /// Ends with an error. Only the first end has an effect.
    func end(_ state: inout State, _ error: WebSocketError) { finish(&state, .failure(error)) }

    private func finish(_ state: inout State, _ end: WebSocketInbox.Received) {
        guard state.phase != .over else { return }
        state.phase = .over
        state.link.take()?.close()
        if case .failure(let error) = end, error.code == .cancelled { state.inbox.dropMessages() }
        tellEveryone(&state, end)
        wakeLoop()
    }

    private func tellEveryone(_ state: inout State, _ end: WebSocketInbox.Received) {
        state.inbox.finish(end)
        let error: WebSocketError =
            if case .failure(let error) = end { error } else {
                WebSocketError(.closed, "The WebSocket is closed.")
            }
        rejectSenders(&state, error)
        for ping in state.pings { ping.pending.finish(.failure(error)) }
        for closer in state.closers { closer.pending.finish(state.closing) }
        state.pings = []
        state.closers = []
    }
}

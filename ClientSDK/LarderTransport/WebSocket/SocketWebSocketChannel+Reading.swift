import LarderHTTPWire
import LarderTLS
import LarderTime

/// Reading and the end of the connection.
extension SocketWebSocketChannel {
    /// Reads available bytes, at most 16 buffers, so that other connections are served too.
    func read(_ state: inout State) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        for _ in 0..<16 {
            guard state.phase != .over, !state.isReadingPaused, let descriptor = state.descriptor else { return }
            switch SocketCall.receive(descriptor, into: &buffer) {
            case .wouldBlock: return
            case .count(0): return ended(&state, "The peer closed the connection.")
            case .failed(let reason): return ended(&state, "The connection broke: \(reason).")
            case .count(let count):
                let received = buffer.span.extracting(0..<count)
                if state.tunnel != nil {
                    openTunnel(&state, received)
                } else if state.tls != nil {
                    decrypt(&state, received)
                } else {
                    take(&state, received)
                }
                // A short read means that the socket is empty.
                if count < buffer.count { return }
            }
        }
    }

    /// Takes the answer of a proxy.
    private func openTunnel(_ state: inout State, _ bytes: Span<UInt8>) {
        do throws(TransportError) {
            guard try state.tunnel?.receive(bytes) == true else { return }
        } catch { return end(&state, WebSocketError(unopened: error)) }
        state.tunnel = nil
        state.output = state.request
        state.outputStart = 0
        state.request = []
        beginHandshake(&state)
    }

    private func decrypt(_ state: inout State, _ bytes: Span<UInt8>) {
        var plain: [UInt8] = []
        var failure: TLSError?
        do throws(TLSError) { try state.tls?.receive(bytes, into: &plain) } catch { failure = error }
        let wasEstablished = state.tls?.isEstablished == true
        flush(&state)
        if !plain.isEmpty { take(&state, plain.span) }
        if let failure {
            let isOpen = state.phase != .opening || wasEstablished
            return end(
                &state,
                isOpen ? WebSocketError(.interrupted, failure.description) : WebSocketError(unopened: failure)
            )
        }
        if state.tls?.isEndedByPeer == true { ended(&state, "The peer ended the TLS session.") }
    }

    private func take(_ state: inout State, _ bytes: Span<UInt8>) {
        switch state.phase {
        case .opening:
            switch state.upgrade.receive(bytes) {
            case .pending: return
            case .failed(let error): return end(&state, error)
            case .accepted(let subprotocol, let fields, let rest):
                state.phase = .open
                state.deadline = nil
                state.subprotocol = subprotocol
                state.fields = fields
                state.heartbeat = Heartbeat(
                    interval: configuration.pingInterval,
                    timeout: configuration.pongTimeout,
                    now: clock.uptime
                )
                let isAwaited = state.opening?.finish(.success(())) ?? false
                state.opening = nil
                // The opening task was cancelled.
                guard isAwaited else {
                    return end(&state, WebSocketError(.cancelled, "The task that connects was cancelled."))
                }
                // Bytes after the handshake belong to the WebSocket.
                if !rest.isEmpty { take(&state, rest.span) }
            }
        case .open:
            state.heartbeat.heard(at: clock.uptime)
            var events: [WebSocketEvent] = []
            state.parser.receive(bytes, &events)
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
            if !state.hasSentClose, state.pendingOutput <= configuration.outputBytesMaximum {
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
        switch state.phase {
        case .opening:
            if let tunnel = state.tunnel { return end(&state, WebSocketError(unopened: tunnel.failure(reason))) }
            if let tls = state.tls, !tls.isEstablished, let cut = tls.errorAtEnd {
                return end(&state, WebSocketError(unopened: cut))
            }
            end(&state, state.upgrade.end() ?? WebSocketError(.interrupted, reason))
        case .open where state.hasSentClose: endClosed(&state)
        default: end(&state, WebSocketError(.interrupted, reason))
        }
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
        if let descriptor = state.descriptor {
            state.tls?.end { SocketCall.send(descriptor, $0, from: $1) }
            SocketCall.shut(descriptor)
        }
        state.descriptor = nil
        state.tls = nil
        state.output = []
        state.outputStart = 0
        if case .failure(let error) = end {
            if error.code == .cancelled { state.inbox.dropMessages() }
            state.opening?.finish(.failure(error))
        }
        state.opening = nil
        tellEveryone(&state, end)
        wakeLoop()
    }

    private func tellEveryone(_ state: inout State, _ end: WebSocketInbox.Received) {
        state.inbox.finish(end)
        let error: WebSocketError =
            if case .failure(let error) = end { error } else {
                WebSocketError(.closed, "The WebSocket is closed.")
            }
        for sender in state.senders { sender.pending.finish(.failure(error)) }
        for ping in state.pings { ping.pending.finish(.failure(error)) }
        for closer in state.closers { closer.pending.finish(state.closing) }
        state.senders = []
        state.pings = []
        state.closers = []
    }
}

import LarderHTTP
import LarderHTTPWire
import LarderTLS
import LarderTime

/// Reading from the server.
extension SocketConnection {
    /// Reads available bytes, at most 16 times, so that other connections are served too.
    func read(_ state: inout State) -> DeferredEffect {
        for _ in 0..<16 {
            guard !state.isPaused, let received = state.link?.receive() else { return .nothing }
            let deferredEffect = take(&state, received)
            guard case .nothing = deferredEffect, !received.isDrained else { return deferredEffect }
        }
        return .nothing
    }

    private func take(_ state: inout State, _ received: SocketLink.Received) -> DeferredEffect {
        if state.tunnel != nil, received.end == nil { return openTunnel(&state, received.bytes) }
        let isSecuring = state.phase == .securing
        if isSecuring, case .broken(let error)? = received.end { return broke(&state, TransportError(unsent: error)) }
        // The request is sent once the handshake is complete.
        if isSecuring, state.link?.tls?.isEstablished == true {
            let deferredEffect = serve(&state)
            guard case .nothing = deferredEffect else { return deferredEffect }
        }
        if !received.bytes.isEmpty {
            let deferredEffect = take(&state, received.bytes)
            guard case .nothing = deferredEffect else { return deferredEffect }
        }
        switch received.end {
        case nil: return .nothing
        case .closed: return ended(&state)
        case .failed(let reason):
            let place = isSecuring && state.link?.tls != nil ? " in the TLS handshake" : ""
            return broke(&state, TransportError(.interrupted, "The connection broke\(place): \(reason)."))
        case .broken(let error): return broke(&state, TransportError(.interrupted, error.description, cause: error))
        }
    }

    /// Takes the answer of a proxy. The TLS handshake begins once the tunnel is open.
    private func openTunnel(_ state: inout State, _ bytes: [UInt8]) -> DeferredEffect {
        do throws(TransportError) {
            guard try state.tunnel?.receive(bytes.span) == true else { return .nothing }
        } catch { return fail(&state, error) }
        state.tunnel = nil
        return begin(&state)
    }

    private func take(_ state: inout State, _ bytes: [UInt8]) -> DeferredEffect {
        // Bytes without a request: a later response could not be recognised.
        guard let exchange = state.exchange else { return close(&state) }
        var events: [ResponseReader.Event] = []
        var failure: ResponseReader.Failure?
        var count = 0
        do throws(ResponseReader.Failure) {
            count = try state.reader.receive(bytes.span, &events)
        } catch { failure = error }
        if endpoint.isUpgrade, case .head(let head)? = events.first, head.status == .switchingProtocols,
            let link = state.link.take()
        {
            // The socket goes on as a WebSocket, whose first bytes may have come with the head.
            exchange.upgraded((head, link, Array(bytes[count...])))
            state.exchange = nil
            _ = close(&state)
            return .served(state.pool, isFree: false, exchange, events)
        }
        if let deferredEffect = tell(exchange, events, &state) { return deferredEffect }
        return failure.map { fail(&state, TransportError(.interrupted, $0.description)) } ?? .nothing
    }

    /// Handles the regular end by the peer.
    private func ended(_ state: inout State) -> DeferredEffect {
        guard let exchange = state.exchange else { return close(&state) }
        if let tunnel = state.tunnel { return fail(&state, tunnel.failure("it closed the connection.")) }
        let cut = state.link?.tls?.errorAtEnd
        if state.phase == .securing, let cut { return fail(&state, TransportError(unsent: cut)) }
        if let again = again(exchange, &state) { return again }
        var events: [ResponseReader.Event] = []
        do throws(ResponseReader.Failure) {
            try state.reader.end(&events)
        } catch { return fail(&state, TransportError(.interrupted, error.description)) }
        // The content ends with the connection, and TLS says whether that was cut (RFC 9112 §9.8).
        if let cut { return fail(&state, TransportError(.interrupted, cut.description, cause: cut)) }
        return tell(exchange, events, &state) ?? close(&state)
    }

    private func broke(_ state: inout State, _ error: TransportError) -> DeferredEffect {
        guard let exchange = state.exchange else { return close(&state) }
        if let tunnel = state.tunnel { return fail(&state, tunnel.failure(error.description)) }
        if state.phase == .securing {
            // Nothing of the request was sent.
            let isJudged = error.code == .untrusted
            return fail(&state, isJudged ? error : TransportError(.unreachable, error.description, cause: error.cause))
        }
        return again(exchange, &state) ?? fail(&state, error)
    }

    /// A reused connection that ends without a byte was probably closed before the request arrived. This is not
    /// certain, so only a repeatable request is sent again (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
    private func again(_ exchange: SocketExchange, _ state: inout State) -> DeferredEffect? {
        guard state.isKept, !state.reader.hasBegun, exchange.isRepeatable else { return nil }
        exchange.detachForResend()
        state.exchange = nil
        guard case .over(let pool, _) = close(&state) else { return nil }
        return .over(pool, again: exchange)
    }

    /// Delivers events to an exchange; nil if the response continues.
    private func tell(
        _ exchange: SocketExchange,
        _ events: [ResponseReader.Event],
        _ state: inout State
    ) -> DeferredEffect? {
        if state.reader.isComplete { return served(exchange, events, &state) }
        for event in events {
            switch event {
            case .head(let head):
                if head.status.code >= 400 { stopUpload(&state) }
                exchange.inbox.responded((head.status, head.fields))
            case .content(let bytes):
                switch exchange.inbox.received(bytes) {
                case .more: break
                case .pause: state.isPaused = true
                case .stop(let error):
                    exchange.inbox.finish(.failure(error), dropsContent: true)
                    return fail(&state, error)
                }
            case .end: break
            }
        }
        return nil
    }

    private func served(
        _ exchange: SocketExchange,
        _ rest: [ResponseReader.Event],
        _ state: inout State
    ) -> DeferredEffect {
        let isSent = state.upload == .none && state.link.map { !$0.hasOutput && $0.failure == nil } ?? false
        let isFree =
            state.reader.keepsAlive && isSent && !endpoint.isUpgrade && state.link?.tls?.isEndedByPeer != true
        let pool = state.pool
        state.exchange = nil
        state.isPaused = false
        if isFree {
            state.phase = .idle
            state.deadline = clock.uptime + keepAlive
        } else {
            _ = close(&state)
        }
        return .served(pool, isFree: isFree, exchange, rest)
    }
}

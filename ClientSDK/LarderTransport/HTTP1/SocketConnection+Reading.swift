import LarderHTTP
import LarderHTTPWire
import LarderTLS
import LarderTime

/// Reading from the server.
extension SocketConnection {
    private static var readBytes: Int { 32 << 10 }

    /// Reads available bytes, at most 16 buffers, so that other connections are served too.
    func read(_ state: inout State) -> DeferredEffect {
        // Moved out of the state: a second reference would copy the whole buffer at the first append.
        var buffer: [UInt8] = []
        swap(&buffer, &state.buffer)
        if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: Self.readBytes) }
        defer { if state.phase != .over { swap(&buffer, &state.buffer) } }
        for _ in 0..<16 {
            guard state.phase != .over, !state.isPaused, let descriptor = state.descriptor else { return .nothing }
            switch SocketCall.receive(descriptor, into: &buffer) {
            case .wouldBlock: return .nothing
            case .count(0): return ended(&state)
            case .failed(let reason):
                let place = state.tls != nil && state.phase == .securing ? " in the TLS handshake" : ""
                return broke(&state, TransportError(.interrupted, "The connection broke\(place): \(reason)."))
            case .count(let count):
                let received = buffer.span.extracting(0..<count)
                let deferredEffect =
                    if state.tunnel != nil {
                        openTunnel(&state, received)
                    } else if state.tls != nil {
                        decrypt(&state, received)
                    } else {
                        take(&state, received)
                    }
                guard case .nothing = deferredEffect else { return deferredEffect }
                // A short read means that the socket is empty.
                if count < buffer.count { return .nothing }
            }
        }
        return .nothing
    }

    /// Takes the answer of a proxy. The TLS handshake begins once the tunnel is open.
    private func openTunnel(_ state: inout State, _ bytes: Span<UInt8>) -> DeferredEffect {
        do throws(TransportError) {
            guard try state.tunnel?.receive(bytes) == true else { return .nothing }
        } catch { return fail(&state, error) }
        state.tunnel = nil
        return begin(&state)
    }

    /// Takes encrypted bytes. The request is sent once they complete the handshake.
    private func decrypt(_ state: inout State, _ bytes: Span<UInt8>) -> DeferredEffect {
        var plain: [UInt8] = []
        var failure: TLSError?
        do throws(TLSError) { try state.tls?.receive(bytes, into: &plain) } catch { failure = error }
        if state.phase == .securing {
            flush(&state)
            if let failure { return broke(&state, TransportError(unsent: failure)) }
            guard state.tls?.isEstablished == true else { return .nothing }
            let deferredEffect = serve(&state)
            guard case .nothing = deferredEffect else { return deferredEffect }
        } else {
            flush(&state)
        }
        if !plain.isEmpty {
            let deferredEffect = take(&state, plain.span)
            guard case .nothing = deferredEffect else { return deferredEffect }
        }
        if let failure { return broke(&state, TransportError(.interrupted, failure.description, cause: failure)) }
        return state.tls?.isEndedByPeer == true ? ended(&state) : .nothing
    }

    private func take(_ state: inout State, _ bytes: Span<UInt8>) -> DeferredEffect {
        // Bytes without a request: a later response could not be recognised.
        guard let exchange = state.exchange else { return close(&state) }
        var events: [ResponseReader.Event] = []
        var failure: ResponseReader.Failure?
        do throws(ResponseReader.Failure) {
            try state.reader.receive(bytes, &events)
        } catch { failure = error }
        if let deferredEffect = tell(exchange, events, &state) { return deferredEffect }
        return failure.map { fail(&state, TransportError(.interrupted, $0.description)) } ?? .nothing
    }

    /// Handles the regular end by the peer.
    private func ended(_ state: inout State) -> DeferredEffect {
        guard let exchange = state.exchange else { return close(&state) }
        if let tunnel = state.tunnel { return fail(&state, tunnel.failure("it closed the connection.")) }
        let cut = state.tls?.errorAtEnd
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
        let isSent = state.upload == .none && !state.hasOutput && state.outputFailure == nil
        let isFree = state.reader.keepsAlive && isSent && state.tls?.isEndedByPeer != true
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

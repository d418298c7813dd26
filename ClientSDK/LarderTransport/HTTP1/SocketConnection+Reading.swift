import LarderHTTP
import LarderHTTPWire
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
            guard state.phase == .busy || state.phase == .idle, !state.isPaused, let descriptor = state.descriptor
            else { return .nothing }
            switch SocketCall.receive(descriptor, into: &buffer) {
            case .wouldBlock: return .nothing
            case .count(0): return ended(&state)
            case .failed(let reason): return broke(&state, reason)
            case .count(let count):
                let deferredEffect = take(&state, buffer.span.extracting(0..<count))
                guard case .nothing = deferredEffect else { return deferredEffect }
                // A short read means that the socket is empty.
                if count < buffer.count { return .nothing }
            }
        }
        return .nothing
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
        return failure.map { fail(&state, Self.error($0)) } ?? .nothing
    }

    /// Handles the regular end by the peer.
    private func ended(_ state: inout State) -> DeferredEffect {
        guard let exchange = state.exchange else { return close(&state) }
        if let again = again(exchange, &state) { return again }
        var events: [ResponseReader.Event] = []
        do throws(ResponseReader.Failure) {
            try state.reader.end(&events)
        } catch { return fail(&state, Self.error(error)) }
        return tell(exchange, events, &state) ?? close(&state)
    }

    private func broke(_ state: inout State, _ reason: String) -> DeferredEffect {
        guard let exchange = state.exchange else { return close(&state) }
        let error = TransportError(.interrupted, "The connection broke: \(reason).")
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
        let isSent = state.upload == .none && state.pendingOutput == 0 && state.outputFailure == nil
        let isFree = state.reader.keepsAlive && isSent
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

    private static func error(_ failure: ResponseReader.Failure) -> TransportError {
        switch failure {
        case .noResponse: TransportError(.interrupted, "The server closed the connection without a response.")
        case .truncated(let reason), .malformed(let reason): TransportError(.interrupted, reason)
        }
    }
}

import LarderHTTP
import LarderTime

/// What comes from the server.
extension SocketConnection {
    private static var readBytes: Int { 32 << 10 }

    /// Reads what is there, in bounded steps so that one connection does not starve the others.
    func read(_ state: inout State) -> Aftermath {
        // Taken out, so that it can be looked at while the rest changes.
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
                let aftermath = take(&state, buffer.span.extracting(0..<count))
                guard case .nothing = aftermath else { return aftermath }
                // A short read has emptied the socket; to ask again would be a call for nothing.
                if count < buffer.count { return .nothing }
            }
        }
        return .nothing
    }

    private func take(_ state: inout State, _ bytes: Span<UInt8>) -> Aftermath {
        // What comes unasked belongs to nobody, and what came after it could not be told from a reply.
        guard let exchange = state.exchange else { return close(&state) }
        var events: [ReplyReader.Event] = []
        var failure: ReplyReader.Failure?
        do throws(ReplyReader.Failure) {
            try state.reader.receive(bytes, &events)
        } catch { failure = error }
        if let aftermath = tell(exchange, events, &state) { return aftermath }
        return failure.map { fail(&state, Self.error($0)) } ?? .nothing
    }

    /// The peer closes in order.
    private func ended(_ state: inout State) -> Aftermath {
        guard let exchange = state.exchange else { return close(&state) }
        if let again = again(exchange, &state) { return again }
        var events: [ReplyReader.Event] = []
        do throws(ReplyReader.Failure) {
            try state.reader.end(&events)
        } catch { return fail(&state, Self.error(error)) }
        return tell(exchange, events, &state) ?? close(&state)
    }

    private func broke(_ state: inout State, _ reason: String) -> Aftermath {
        guard let exchange = state.exchange else { return close(&state) }
        let error = TransportError(.interrupted, "The connection broke: \(reason).")
        return again(exchange, &state) ?? fail(&state, error)
    }

    /// A connection that was kept and ends without a word was dead, most likely, before the request left; whether it was is not
    /// known, so only what may be done twice is sent again (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
    private func again(_ exchange: SocketExchange, _ state: inout State) -> Aftermath? {
        guard state.isKept, !state.reader.hasBegun, exchange.isRepeatable else { return nil }
        exchange.leaveForAnother()
        state.exchange = nil
        guard case .over(let pool, _) = close(&state) else { return nil }
        return .over(pool, again: exchange)
    }

    /// Tells an exchange what has come for it; nil where it goes on.
    private func tell(
        _ exchange: SocketExchange,
        _ events: [ReplyReader.Event],
        _ state: inout State
    ) -> Aftermath? {
        if state.reader.isOver { return served(exchange, events, &state) }
        for event in events {
            switch event {
            case .head(let status, let fields): exchange.inbox.responded((status, fields))
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
        _ rest: [ReplyReader.Event],
        _ state: inout State
    ) -> Aftermath {
        let isFree = state.reader.keepsAlive && state.pendingOutput == 0 && state.outputFailure == nil
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

    private static func error(_ failure: ReplyReader.Failure) -> TransportError {
        switch failure {
        case .noReply: TransportError(.interrupted, "The server closed the connection without a reply.")
        case .cutShort(let reason), .malformed(let reason): TransportError(.interrupted, reason)
        }
    }
}

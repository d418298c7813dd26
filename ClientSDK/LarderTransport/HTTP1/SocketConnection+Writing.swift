import LarderTime
import Synchronization

/// Writing to the server.
extension SocketConnection {
    /// Writes bytes of a body, and waits until the socket has accepted them.
    ///
    /// - Returns: false if the connection takes no more of this exchange.
    func write(_ bytes: [UInt8], of exchange: SocketExchange, isLast: Bool) async -> Bool {
        let drained = Pending<Bool>()
        let isWritten: Bool? = state.withLock { state in
            guard state.exchange === exchange, state.upload == .running, let link = state.link, link.failure == nil
            else { return false }
            if isLast { state.upload = .none }
            // The head may not have been written yet.
            link.append(bytes)
            flush(&state)
            guard link.pendingCount > 0 else {
                // Encrypted bytes may still wait for the socket, and the loop may wait for the server alone.
                if link.hasOutput { loop.wake() }
                return link.failure == nil
            }
            state.drained = drained
            return nil
        }
        if let isWritten { return isWritten }
        loop.wake()
        return await drained.value(ifCancelled: false)
    }

    /// Fails an exchange whose body could not be read.
    func failUpload(_ exchange: SocketExchange, _ error: TransportError) {
        perform(
            state.withLock { state in
                guard state.exchange === exchange else { return .nothing }
                return fail(&state, error)
            }
        )
    }

    /// Stops sending the body of a request that the server has rejected (RFC 9112 §9.5).
    func stopUpload(_ state: inout State) {
        guard state.upload == .running else { return }
        state.upload = .stopped
        state.link?.discardOutput()
        state.drained.take()?.finish(false)
    }

    /// Writes what the socket accepts; the loop writes the rest.
    func flush(_ state: inout State) {
        guard let link = state.link else { return }
        link.flush()
        if link.pendingCount == 0 { state.drained.take()?.finish(link.failure == nil) }
    }
}

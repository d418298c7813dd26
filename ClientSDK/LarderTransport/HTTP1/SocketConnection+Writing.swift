import LarderTLS
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
            guard state.exchange === exchange, state.upload == .running, state.outputFailure == nil else {
                return false
            }
            if isLast { state.upload = .none }
            // The head may not have been written yet.
            if state.pendingOutput == 0 {
                state.output = bytes
                state.outputStart = 0
            } else {
                state.output += bytes
            }
            flush(&state)
            guard state.pendingOutput > 0 else {
                // Encrypted bytes may still wait for the socket, and the loop may wait for the server alone.
                if state.hasOutput { loop.wake() }
                return state.outputFailure == nil
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
        state.output = []
        state.outputStart = 0
        state.drained.take()?.finish(false)
    }

    /// Writes what the socket accepts; the loop writes the rest.
    func flush(_ state: inout State) {
        guard let descriptor = state.descriptor else { return }
        if case .failed(let reason)? = state.tls?.flush({ SocketCall.send(descriptor, $0, from: $1) }) {
            // The connection ends when reading ends: the peer may have sent its reason.
            state.outputFailure = reason
            state.outputStart = state.output.count
        }
        guard state.phase == .busy || state.tunnel != nil else { return }
        while state.pendingOutput > 0 {
            let sent =
                state.tls?.send(state.output, from: state.outputStart) { SocketCall.send(descriptor, $0, from: $1) }
                ?? SocketCall.send(descriptor, state.output, from: state.outputStart)
            switch sent {
            case .count(let count): state.outputStart += count
            case .wouldBlock: return
            case .failed(let reason):
                // The connection ends when reading ends: the peer may have sent its reason.
                state.outputFailure = reason
                state.outputStart = state.output.count
            }
        }
        state.output = []
        state.outputStart = 0
        state.drained.take()?.finish(state.outputFailure == nil)
    }
}

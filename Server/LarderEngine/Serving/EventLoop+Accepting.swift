import LarderHTTP
import LarderTime

/// The port and the connections that are accepted on it.
extension EventLoop {
    func listen(_ shouldListen: Bool) {
        nextListen = nil
        guard shouldListen != isListening, !shouldListen || !isStopping, let listener else { return }
        isListening = shouldListen
        if shouldListen {
            do {
                try poller.watch(listener.descriptor, for: .read, isShared: configuration.loops > 1)
            } catch {
                preconditionFailure("The loop cannot watch its listener: \(error)")
            }
        } else {
            poller.forget(listener.descriptor)
        }
    }

    func acceptConnections(from listener: Listener) {
        // A bounded number per turn, so that existing connections are served too.
        for _ in 0..<64 {
            switch listener.accept() {
            case .connection(let descriptor, let peer): admit(descriptor, peer)
            case .none: return
            case .exhausted:
                // Without free descriptors the listener stays ready; pausing it avoids a busy loop.
                listen(false)
                nextListen = SystemMonotonicClock().uptime + .milliseconds(100)
                return
            }
        }
    }

    private func admit(_ descriptor: Int32, _ peer: SocketAddress) {
        let (id, count) = connectionCount.enter()
        let connection = Connection(descriptor, id: id, peer: peer, loop: self)
        connections[id] = connection
        watch(connection, for: .read)
        if count > configuration.connectionsMaximum {
            connection.reject(
                Rejection(
                    .serviceUnavailable,
                    "The limit of \(configuration.connectionsMaximum) connections is reached."
                )
            )
        }
    }
}

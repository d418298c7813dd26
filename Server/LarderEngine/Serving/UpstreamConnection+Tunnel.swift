import Glibc
import LarderTLS
import LarderTime

/// A tunnel after a 101: bytes are passed on unchanged, as far as the other side takes them.
extension UpstreamConnection {
    /// How many bytes may wait in a tunnel for one side before the other one is not read any more.
    private static let tunnelBytesMaximum = 256 << 10

    /// Begins to pass bytes to the client.
    ///
    /// - Returns: what has arrived already, for the client to write after the head of its reply.
    func join(_ client: Connection) -> [UInt8] {
        guard case .tunnel = phase else {
            client.closeAfterContent()
            return []
        }
        self.client = client
        updateInterest()
        return Swift.exchange(&early, with: [])
    }

    /// Whether so much waits for the server that no more should be read from the client.
    var isBacklogged: Bool { output.waitingBytes >= Self.tunnelBytesMaximum }

    /// Sends bytes of the client. A server that does not read them for `responseTimeoutSeconds` is given up.
    func send(_ bytes: [UInt8]) {
        guard case .tunnel = phase else { return }
        if output.isEmpty { deadline = loop.now + .seconds(Self.responseTimeoutSeconds) }
        output.append(bytes)
        flush()
    }

    /// The client sends no more: the sending side ends after the pending bytes. The server may still send, as long as it does so at
    /// least every `closeTimeoutSeconds`.
    func clientEnded() {
        guard case .tunnel = phase else { return }
        hasClientEnded = true
        deadline = loop.now + .seconds(Self.closeTimeoutSeconds)
        flush()
    }

    /// The client's connection is closed: the pending bytes are written, and the connection is closed when the server has closed too, or
    /// after `closeTimeoutSeconds` without progress.
    func clientClosed() {
        client = nil
        guard case .tunnel = phase else { return }
        phase = .closing
        deadline = loop.now + .seconds(Self.closeTimeoutSeconds)
        flush()
    }

    /// Reads from the server while the client reads.
    func updateInterest() {
        guard case .tunnel = phase else { return }
        var wanted: Readiness = output.isEmpty ? [] : .write
        if let client, client.waitingBytes < Self.tunnelBytesMaximum { wanted.insert(.read) }
        watch(wanted)
    }

    func endSending() {
        output.tls?.end { SystemCall.send(descriptor, $0, from: $1) }
        shutdown(descriptor, Int32(SHUT_WR))
    }
}

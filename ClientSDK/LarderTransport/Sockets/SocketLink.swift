import LarderTLS

/// A connected socket, the TLS session over it, and the bytes that wait until the socket accepts them.
///
/// `@unchecked Sendable`: a data race cannot happen, because there is one reference at a time that outlives a call: `State.link` of a
/// `SocketConnection` or a `SocketWebSocketChannel`, which uses it within `withLock` of that state only. For an upgrade the connection
/// takes it out of its state (`take`) before the exchange gets it, the exchange gives it away once (`takeUpgraded`, under its lock), and the
/// channel that gets it is its next owner.
final class SocketLink: @unchecked Sendable {
    /// What was received at once.
    struct Received {
        var bytes: [UInt8] = []
        /// Follows the bytes; nil if the connection goes on.
        var end: End?
        /// Whether the socket has no more at present.
        var isDrained = false
    }

    enum End {
        /// The peer has ended the connection, or its side of the TLS session.
        case closed
        case failed(String)
        case broken(TLSError)
    }

    private static let readBytes = 32 << 10
    private static let sentBytesMaximum = 1 << 18

    private let descriptor: Int32
    /// Set for https and wss, once there is a connection to the server.
    var tls: TLSFilter?
    private var output: [UInt8] = []
    private var start = 0
    /// Why sending failed. Received bytes may still be unread.
    private(set) var failure: String?

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// The bytes that were neither sent nor encrypted yet.
    var pendingCount: Int { output.count - start }

    /// Whether something can be written once the socket is writable.
    var hasOutput: Bool {
        guard failure == nil else { return false }
        guard let tls else { return pendingCount > 0 }
        return tls.hasOutput || (tls.isEstablished && pendingCount > 0)
    }

    /// What the loop waits for.
    func interest(reads: Bool) -> SocketInterest {
        let writes = hasOutput
        // poll(2) reports a closed socket repeatedly even without an interest.
        return SocketInterest(descriptor: reads || writes ? descriptor : nil, reads: reads, writes: writes)
    }

    /// Receives and decrypts what is there, at most `readBytes`.
    func receive() -> Received {
        let (bytes, outcome) = SocketCall.receive(descriptor, maximum: Self.readBytes)
        var received = Received()
        switch outcome {
        case .wouldBlock:
            received.isDrained = true
            // Its end may have come with bytes that were received before the socket got its present owner.
            if tls?.isEndedByPeer == true { received.end = .closed }
        case .count(0): received.end = .closed
        case .failed(let reason): received.end = .failed(reason)
        case .count(let count):
            // A short read means that the socket is empty.
            received.isDrained = count < Self.readBytes
            guard tls != nil else {
                received.bytes = bytes
                return received
            }
            do throws(TLSError) { try tls?.receive(bytes.span, into: &received.bytes) } catch {
                received.end = .broken(error)
            }
            // Also after an error: the peer is told the reason.
            flush()
            if received.end == nil, tls?.isEndedByPeer == true { received.end = .closed }
        }
        return received
    }

    func append(_ bytes: [UInt8]) {
        guard failure == nil else { return }
        if pendingCount > 0 { output += bytes } else { (output, start) = (bytes, 0) }
    }

    /// Writes what the socket accepts; the loop writes the rest. A failure is kept: the connection ends when reading ends, because the peer
    /// may have sent its reason.
    func flush() {
        if case .failed(let reason)? = tls?.flush(write) { fail(reason) }
        while pendingCount > 0 {
            switch tls?.send(output, from: start, write) ?? write(output, start) {
            case .count(let count): start += count
            case .failed(let reason): fail(reason)
            case .wouldBlock:
                guard start > Self.sentBytesMaximum else { return }
                output.removeFirst(start)
                start = 0
                return
            }
        }
        discardOutput()
    }

    private func write(_ bytes: [UInt8], _ offset: Int) -> SocketCall.Outcome {
        SocketCall.send(descriptor, bytes, from: offset)
    }

    private func fail(_ reason: String) {
        failure = reason
        discardOutput()
    }

    func discardOutput() { (output, start) = ([], 0) }

    /// Ends the sending side.
    func finishSending() {
        tls?.end(write)
        if !hasOutput { SocketCall.finishSending(descriptor) }
    }

    func close() {
        tls?.end(write)
        SocketCall.shut(descriptor)
    }
}

/// What became of bytes that were given to a socket.
package protocol SocketWriteOutcome {
    /// The socket has accepted so many of them.
    static func count(_ count: Int) -> Self
    /// The socket accepts nothing at present.
    static var wouldBlock: Self { get }
    /// The TLS session takes no more.
    static func failed(_ error: TLSError) -> Self
    /// The number of accepted bytes; nil if there was a failure or nothing was accepted.
    var acceptedCount: Int? { get }
}

/// A session between a connection and its socket: it keeps encrypted bytes that the socket has not accepted yet. Its owner guards it.
///
/// `send` has the same contract as a write to the socket itself, so that a connection differs in nothing else. While the handshake is
/// under way it takes no plain bytes: what a request consists of stays with the caller, so that a failure of the handshake has sent
/// nothing of it.
package struct TLSFilter {
    private static let pieceBytes = 64 << 10
    private let session: TLSSession
    private var encrypted: [UInt8] = []
    private var start = 0

    /// Begins the handshake, on a client's side; nothing is written yet.
    package init(_ session: TLSSession) throws(TLSError) {
        self.session = session
        try session.start()
    }

    /// Whether the handshake is complete.
    package var isEstablished: Bool { session.isEstablished }

    /// Whether the peer has ended its side in order.
    package var isEndedByPeer: Bool { session.isEndedByPeer }

    /// The error of a connection that has ended now; nil if the peer had ended it in order.
    package var errorAtEnd: TLSError? { session.errorAtEnd }

    /// The host that the client has named; nil on the client's side, or if it has named none.
    package var requestedHost: String? { session.requestedHost }

    /// Whether encrypted bytes wait until the socket accepts them.
    package var hasOutput: Bool { start < encrypted.count || session.hasOutput }

    /// Writes the encrypted bytes that wait.
    ///
    /// - Parameter write: writes bytes from an offset to the socket.
    /// - Returns: nil if none is left; otherwise why.
    package mutating func flush<Outcome: SocketWriteOutcome>(_ write: ([UInt8], Int) -> Outcome) -> Outcome? {
        while true {
            if start == encrypted.count {
                encrypted = session.takeOutput()
                start = 0
                if encrypted.isEmpty { return nil }
            }
            let outcome = write(encrypted, start)
            guard let count = outcome.acceptedCount else { return outcome }
            start += count
        }
    }

    /// Encrypts bytes from an offset and writes them: a piece of them is taken, or the call would block.
    package mutating func send<Outcome: SocketWriteOutcome>(
        _ bytes: [UInt8],
        from offset: Int,
        _ write: ([UInt8], Int) -> Outcome
    ) -> Outcome {
        if let waiting = flush(write) { return waiting }
        guard session.isEstablished else { return .wouldBlock }
        let end = min(bytes.count, offset + Self.pieceBytes)
        do throws(TLSError) { try session.send(bytes.span.extracting(offset..<end)) } catch { return .failed(error) }
        // A failure is returned by the next call.
        _ = flush(write)
        return .count(end - offset)
    }

    /// Decrypts what the socket has received, and appends it to `plain`. Call `flush` afterwards, also after an error: the peer is told
    /// the reason.
    package mutating func receive(_ bytes: Span<UInt8>, into plain: inout [UInt8]) throws(TLSError) {
        try session.receive(bytes, into: &plain)
    }

    /// Takes the encrypted bytes that wait, of which the socket has accepted none.
    package mutating func takeOutput() -> [UInt8] {
        precondition(start == encrypted.count, "A part of the bytes was written.")
        return session.takeOutput()
    }

    /// Tells the peer that the connection ends in order, as far as the socket accepts it now.
    package mutating func end<Outcome: SocketWriteOutcome>(_ write: ([UInt8], Int) -> Outcome) {
        session.end()
        _ = flush(write)
    }
}

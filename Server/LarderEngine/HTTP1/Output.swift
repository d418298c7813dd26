import Glibc
import LarderTLS

/// The pending output of a connection. All of it passes the TLS session if there is one.
struct Output {
    enum Outcome {
        /// Everything was written.
        case drained
        /// The socket buffer is full.
        case blocked
        /// The peer is gone.
        case failed
    }

    /// Set once the peer has begun a TLS handshake.
    var tls: TLSFilter?
    /// What waits. Small pieces are joined, and large ones are shared with their owner and not copied.
    private var pieces: [[UInt8]] = []
    /// How many bytes of the first piece were sent.
    private var start = 0
    /// Whether the socket did not accept everything the last time.
    private var isBlocked = false
    /// Bytes in memory that wait for the peer to read.
    private(set) var waitingBytes = 0
    /// The total number of bytes written: grows whenever the peer reads.
    private(set) var sentCount = 0

    /// Pieces up to this size are joined and written in one call.
    static let copiedBytesMaximum = 64 << 10

    var isEmpty: Bool { pieces.isEmpty && tls?.hasOutput != true }

    /// Bytes in memory: pending ones and written ones that were not dropped yet.
    var heldBytes: Int { waitingBytes + start }

    /// Whether further replies may be added: what was added earlier is small, and the peer reads it.
    var takesMore: Bool { leavesInOneWrite && waitingBytes <= Self.copiedBytesMaximum }

    /// Whether nothing waits for the peer to read something else first.
    var leavesInOneWrite: Bool { pieces.count <= 1 && !isBlocked }

    mutating func append(_ more: [UInt8]) {
        guard !more.isEmpty else { return }
        waitingBytes += more.count
        if let count = pieces.last?.count, count + more.count <= Self.copiedBytesMaximum {
            pieces[pieces.count - 1] += more
        } else {
            pieces.append(more)
        }
    }

    /// Drops what waits, except for encrypted bytes.
    mutating func removeAll() { (pieces, start, waitingBytes) = ([], 0, 0) }

    /// Writes what the system accepts.
    mutating func flush(to descriptor: Int32) -> Outcome {
        isBlocked = true
        while let first = pieces.first {
            let outcome =
                tls?.send(first, from: start) { SystemCall.send(descriptor, $0, from: $1) }
                ?? SystemCall.send(descriptor, first, from: start)
            switch outcome {
            case .count(let count):
                sentCount += count
                waitingBytes -= count
                start += count
                guard start == first.count else { continue }
                pieces.removeFirst()
                start = 0
            case .wouldBlock: return .blocked
            case .failed: return .failed
            }
        }
        // Encrypted bytes may still wait.
        switch tls?.flush({ SystemCall.send(descriptor, $0, from: $1) }) {
        case nil: break
        case .wouldBlock?, .count?: return .blocked
        case .failed?: return .failed
        }
        isBlocked = false
        return .drained
    }
}

extension SystemCall.Outcome: SocketWriteOutcome {
    static func failed(_ error: TLSError) -> Self { .failed(EPROTO) }

    var acceptedCount: Int? { if case .count(let count) = self { count } else { nil } }
}

import Glibc
import LarderTLS

/// The pending output of a connection: bytes, then large bodies that are read piece by piece. All of it passes the TLS session if there is
/// one.
struct Output {
    private enum Large {
        case bytes([UInt8], sent: Int)
        case file(FileRegion, sent: Int)
    }

    enum Outcome {
        /// Everything was written.
        case drained
        /// The socket buffer is full.
        case blocked
        /// The peer is gone, or a file could not be read.
        case failed
    }

    /// Set once the peer has begun a TLS handshake.
    var tls: TLSFilter?
    private var bytes = ByteQueue()
    private var large: [Large] = []
    /// The total number of bytes written: grows whenever the peer reads.
    private(set) var sentCount = 0

    /// Bodies up to this size are copied behind their head and written with it in one call.
    static let copiedBytesMaximum = 64 << 10
    private static let pieceBytes = 256 << 10

    var isEmpty: Bool { bytes.isEmpty && large.isEmpty && tls?.hasOutput != true }

    /// Bytes in memory that wait for the peer to read.
    var waitingBytes: Int {
        large.reduce(bytes.count) { sum, item in
            if case .bytes(let body, let sent) = item { sum + body.count - sent } else { sum }
        }
    }

    /// Bytes in memory: pending ones and written ones that were not dropped yet.
    var heldBytes: Int { waitingBytes + bytes.start }

    var hasLarge: Bool { !large.isEmpty }

    mutating func append(_ more: [UInt8]) {
        precondition(large.isEmpty, "A large body must be sent before anything else is added.")
        bytes.append(more)
    }

    mutating func appendLarge(_ body: [UInt8]) { large.append(.bytes(body, sent: 0)) }

    mutating func appendLarge(_ file: FileRegion) { large.append(.file(file, sent: 0)) }

    /// Writes bytes directly, and stores what the system did not accept.
    mutating func write(_ fresh: [UInt8], to descriptor: Int32) -> Outcome {
        guard bytes.isEmpty else {
            bytes.append(fresh)
            return flush(to: descriptor)
        }
        switch tls == nil ? SystemCall.send(descriptor, fresh, from: 0) : .count(0) {
        case .count(let count):
            sentCount += count
            if count < fresh.count { bytes.append(Array(fresh[count...])) }
        case .wouldBlock:
            bytes.append(fresh)
            return .blocked
        case .failed: return .failed
        }
        return flush(to: descriptor)
    }

    mutating func flush(to descriptor: Int32) -> Outcome {
        while true {
            while !bytes.isEmpty {
                switch send(descriptor, bytes.bytes, from: bytes.start) {
                case .count(let count):
                    sentCount += count
                    bytes.removeFirst(count)
                case .wouldBlock: return .blocked
                case .failed: return .failed
                }
            }
            guard let item = large.first else { return drained(descriptor) }
            switch item {
            case .bytes(let body, let from):
                switch send(descriptor, body, from: from) {
                case .count(let count):
                    sentCount += count
                    advance(.bytes(body, sent: from + count), isDone: from + count == body.count)
                case .wouldBlock: return .blocked
                case .failed: return .failed
                }
            case .file(let region, let from):
                let count = min(Self.pieceBytes, region.range.count - from)
                guard count > 0 else {
                    large.removeFirst()
                    continue
                }
                guard let piece = region.read(at: from, count: count) else { return .failed }
                bytes.append(piece)
                advance(.file(region, sent: from + count), isDone: from + count == region.range.count)
            }
        }
    }

    private mutating func send(_ descriptor: Int32, _ bytes: [UInt8], from offset: Int) -> SystemCall.Outcome {
        tls?.send(bytes, from: offset) { SystemCall.send(descriptor, $0, from: $1) }
            ?? SystemCall.send(descriptor, bytes, from: offset)
    }

    /// The outcome after the last plain byte: encrypted ones may still wait.
    private mutating func drained(_ descriptor: Int32) -> Outcome {
        switch tls?.flush({ SystemCall.send(descriptor, $0, from: $1) }) {
        case nil: .drained
        case .wouldBlock?, .count?: .blocked
        case .failed?: .failed
        }
    }

    private mutating func advance(_ item: Large, isDone: Bool) {
        if isDone { large.removeFirst() } else { large[0] = item }
    }
}

extension SystemCall.Outcome: SocketWriteOutcome {
    static func failed(_ error: TLSError) -> Self { .failed(EPROTO) }

    var acceptedCount: Int? { if case .count(let count) = self { count } else { nil } }
}

import LarderTime
import LarderTransport
import Synchronization

/// Pieces of one size that are made when they are asked for, and counted.
struct MadePieces: AsyncSequence, Sendable {
    final class Count: Sendable {
        private let state = Mutex(0)
        var bytes: Int { state.withLock { $0 } }
        func add(_ count: Int) { state.withLock { $0 += count } }
    }

    struct Iterator: AsyncIteratorProtocol {
        let pieces: MadePieces
        var left: Int

        mutating func next() async throws -> [UInt8]? {
            guard left > 0 else { return nil }
            left -= 1
            pieces.count.add(pieces.size)
            return [UInt8](repeating: UInt8(truncatingIfNeeded: left), count: pieces.size)
        }
    }

    let number: Int
    let size: Int
    let count = Count()

    func makeAsyncIterator() -> Iterator { Iterator(pieces: self, left: number) }
}

/// A sequence of these pieces, which then fails or ends.
func pieces(_ pieces: [String], failing error: (any Error)? = nil) -> AsyncThrowingStream<[UInt8], any Error> {
    AsyncThrowingStream { continuation in
        for piece in pieces { continuation.yield(Array(piece.utf8)) }
        continuation.finish(throwing: error)
    }
}

extension RequestBody {
    /// Everything that is written; nil if it was not complete.
    func written(_ length: Int?) async throws(TransportError) -> [UInt8]? {
        var all: [UInt8] = []
        var isEnded = false
        let isWhole = try await write(length) { piece, isLast in
            all += piece
            isEnded = isLast
            return true
        }
        return isWhole && isEnded ? all : nil
    }
}

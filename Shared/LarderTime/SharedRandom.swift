import Synchronization

/// A shared random number generator. Safe from any thread.
package final class SharedRandom: Sendable {
    private let source: Mutex<any RandomNumberGenerator & Sendable>

    package init(_ source: any RandomNumberGenerator & Sendable) { self.source = Mutex(source) }

    /// Returns 32 random bits, the size of a WebSocket mask.
    package func next() -> UInt32 { source.withLock { UInt32(truncatingIfNeeded: $0.next()) } }

    package func bytes(_ count: Int) -> [UInt8] {
        source.withLock { source in (0..<count).map { _ in UInt8(truncatingIfNeeded: source.next()) } }
    }
}

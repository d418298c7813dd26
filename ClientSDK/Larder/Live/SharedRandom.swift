import Synchronization

/// A source of random numbers for many. Safe from any thread.
final class SharedRandom: Sendable {
    private let source: Mutex<AnyRandom>

    init(_ source: any RandomNumberGenerator & Sendable) { self.source = Mutex(AnyRandom(source)) }

    /// The next 32 bits, which is what a mask has.
    func next() -> UInt32 { source.withLock { UInt32(truncatingIfNeeded: $0.next()) } }

    /// So many bytes.
    func bytes(_ count: Int) -> [UInt8] {
        source.withLock { source in (0..<count).map { _ in UInt8(truncatingIfNeeded: source.next()) } }
    }
}

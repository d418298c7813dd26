/// Reduces the memory use of one component: a cache, an image pipeline, a decoder.
///
/// The guard calls `stop` of all reactions before `release` of any, so that running loads do not refill what was released. It makes
/// one call at a time, in the order of registration, holding no lock, on the thread that reported the pressure: both functions
/// should return quickly. While pressure lasts they are called again with the same limits.
public struct MemoryReaction: Sendable {
    /// The name of the component, for debugging.
    public let name: String
    let stop: @Sendable (MemoryLimits) -> Int
    let release: @Sendable (MemoryLimits) -> Int

    /// - Parameters:
    ///   - stop: cancels loads and limits concurrency and quality; returns the number of cancelled loads.
    ///   - release: shrinks to the limits or allows growth again; returns about how many bytes were freed.
    public init(
        _ name: String,
        stop: @escaping @Sendable (MemoryLimits) -> Int = { _ in 0 },
        release: @escaping @Sendable (MemoryLimits) -> Int = { _ in 0 }
    ) {
        self.name = name
        self.stop = stop
        self.release = release
    }
}

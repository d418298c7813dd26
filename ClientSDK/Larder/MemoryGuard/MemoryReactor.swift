/// Something that uses memory and can do with less: a tier, an image pipeline, a decoder.
///
/// The guard first has all of them stop work and then all of them release memory, so that nothing that was released is filled
/// again by loads that went on. It calls one at a time, in the order of registration, holding no lock, on the thread that
/// brought the news: be quick. The same posture may be applied again and again while pressure lasts, to hold what was reached.
public protocol MemoryReactor: Sendable {
    /// What it is called in reports.
    var name: String { get }

    /// Cancels loads and stops or allows prefetch, as the posture says, and sets how much is done at a time, and how well.
    ///
    /// - Returns: how many loads were cancelled.
    func stopWork(for posture: MemoryPosture) -> Int

    /// Shrinks to what the posture allows, and keeps to it; or takes more again, if it does.
    ///
    /// - Returns: about how many bytes were freed.
    func releaseMemory(for posture: MemoryPosture) -> Int
}

/// A reactor made of two functions.
public struct MemoryReaction: MemoryReactor {
    /// What it is called in reports.
    public let name: String
    private let stop: @Sendable (MemoryPosture) -> Int
    private let release: @Sendable (MemoryPosture) -> Int

    /// - Parameters:
    ///   - stop: stops work; gives how many loads it cancelled.
    ///   - release: shrinks; gives how many bytes it freed.
    public init(
        _ name: String,
        stop: @escaping @Sendable (MemoryPosture) -> Int = { _ in 0 },
        release: @escaping @Sendable (MemoryPosture) -> Int = { _ in 0 }
    ) {
        self.name = name
        self.stop = stop
        self.release = release
    }

    /// Stops work.
    public func stopWork(for posture: MemoryPosture) -> Int { stop(posture) }

    /// Shrinks.
    public func releaseMemory(for posture: MemoryPosture) -> Int { release(posture) }
}

import Synchronization

/// How many replies of a recording to each request a world has had. Safe from any thread.
final class PlayedReplies: Sendable {
    private let counts = Mutex<[Int: Int]>([:])

    /// The number of those before.
    ///
    /// - Parameters:
    ///   - index: that of the request in the recording.
    ///   - advances: whether the next reply is counted.
    func count(_ index: Int, advances: Bool) -> Int {
        counts.withLock { counts in
            let count = counts[index, default: 0]
            if advances { counts[index] = count + 1 }
            return count
        }
    }

    /// Begins again.
    func reset() { counts.withLock { $0 = [:] } }
}

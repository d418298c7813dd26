import Synchronization

/// The number of times that commits of other processes were seen: cached reads from before are invalid. Safe from any thread.
package final class ForeignCommits: Sendable {
    private let number = Atomic<UInt64>(0)

    /// Only grows.
    package var count: UInt64 { number.load(ordering: .acquiring) }

    func note() { number.wrappingAdd(1, ordering: .releasing) }
}

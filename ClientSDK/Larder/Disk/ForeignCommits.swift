import Synchronization

/// How often it was seen that another process has changed the store: what was read before counts for nothing then. Safe from any
/// thread.
final class ForeignCommits: Sendable {
    private let number = Atomic<UInt64>(0)

    /// Only grows.
    var count: UInt64 { number.load(ordering: .acquiring) }

    /// Something was seen.
    func note() { number.wrappingAdd(1, ordering: .releasing) }
}

import LarderStorage
import LarderTime

/// A change to a query index that depends on its stored content: it merges a page into a list instead of replacing the
/// list.
struct QueryMerge: Sendable {
    /// Whether the answer confirms the list, so that its times are renewed.
    var confirms: Bool
    /// The freshness that the source stated.
    var stated: StatedFreshness?
    /// The entities of the answer. Those that are known to be deleted are not in `Context.stored`.
    var keys: [EntityKey] = []
    /// Changes the index. The index is empty if none is stored.
    var apply: @Sendable (inout DiskQuery, inout RunOrders, Context) throws -> Void

    /// The inputs of the change besides the index.
    struct Context: Sendable {
        /// The stamp of the request, when it began, less the stated `Age`, and when its answer is stored.
        var order: UInt64
        var startedAt: WallTime
        var receivedAt: WallTime
        /// The keys of the entities that exist, in memory, on the disk or as values that a later reply has brought and that are lost.
        var stored: Set<EntityKey>
        /// The stamp of the latest request that confirmed the list, also by "not modified".
        var confirmedOrder: UInt64
        /// Whether the list was invalidated as a whole, or its times are not meaningful (`StoredQuery.isInvalid`).
        var isInvalid: Bool
    }
}

/// The stamps of the requests that the runs of a list came with. In memory only: requests of this process.
struct RunOrders: Sendable, Hashable {
    /// That of the newest run.
    var head: UInt64 = 0
    /// By the members that begin the other runs.
    var runs: [EntityKey: UInt64] = [:]
}

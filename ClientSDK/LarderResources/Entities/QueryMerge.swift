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
    var apply: @Sendable (inout DiskQuery, Context) throws -> Void

    /// The inputs of the change besides the index.
    struct Context: Sendable {
        /// The stamp of the request, when it began, less the stated `Age`, and when its answer is stored.
        var stamp: Stamp
        var startedAt: WallTime
        var receivedAt: WallTime
        /// The keys of the entities that exist, in memory, on the disk or as values that a later reply has brought and that are lost.
        var stored: Set<EntityKey>
        /// Whether the list was invalidated as a whole, or its times are not meaningful (`StoredQuery.isInvalid`).
        var isInvalid: Bool
    }
}

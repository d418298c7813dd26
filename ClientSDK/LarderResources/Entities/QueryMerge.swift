import LarderStorage
import LarderTime

/// A change to a query index that goes by what is there: a page that is woven into a list, and not a list that replaces another.
struct QueryMerge: Sendable {
    /// Whether the answer confirms the list: its times are renewed.
    var confirms: Bool
    var stated: StatedFreshness?
    /// The entities that the answer names: those that are known to be deleted are left out of `Context.stored`.
    var keys: [EntityKey] = []
    /// Changes the index. Where there was none it is empty.
    var apply: @Sendable (inout DiskQuery, inout QueryOrders, Context) throws -> Void

    /// What the change goes by.
    struct Context: Sendable {
        /// The place of the request in the order of requests, and when it began.
        var order: UInt64
        var startedAt: WallTime
        /// Which of the keys are stored.
        var stored: Set<EntityKey>
        /// Whether items that the answer does not overlap are dropped (`ListResets`).
        var isReset: Bool
    }
}

/// By which requests the items of a list were confirmed last, as far as that was in this process. In memory only.
struct QueryOrders: Sendable, Hashable {
    /// The order of the latest request that said how the list begins.
    var head: UInt64 = 0
    var items: [EntityKey: UInt64] = [:]
}

extension DiskStore {
    /// An event of the store. Cases may be added.
    public enum Event: Sendable {
        /// The database was damaged or missing and has been replaced.
        case recovered(Recovery)
        /// An item was damaged or cannot be decoded. The read was a miss, and the item is removed. `item` is the description of its key;
        /// `reason` is `checksum` or `undecodable`, then with the cause.
        case discarded(item: String, reason: String, cause: String? = nil)
        /// The store was written with another payload transform or key, or without one. All items and change tokens were removed.
        /// Operations of the outbox that cannot be decoded are kept, and not sent until the store is opened with their key.
        case transformChanged(itemsRemoved: Int, operationsUnreadable: Int)
        /// The payload transform could not encode when the store was opened, so the store was left as it is.
        case transformFailed(DiskError)
        /// The directory of the store had been removed, and the store has begun anew (`Configuration.restartsWhileExists`).
        case purged
        /// Items were removed to keep the budget.
        case evicted(count: Int)
        /// Items were removed because of their age.
        case expired(count: Int)
        /// The log could not be emptied of what was stored under another transform.
        case cleaningFailed(DiskError)
    }
}

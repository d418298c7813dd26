extension DiskStore {
    /// An event of the store. Cases may be added.
    public enum Event: Sendable {
        /// The identity of a stored item.
        public enum Item: Sendable, Hashable {
            case entity(EntityKey)
            /// A list.
            case query(QueryKey)
            /// A generic record.
            case record(String)
        }

        /// The reason why a stored item is discarded.
        public enum DiscardReason: Sendable, Hashable {
            /// Its checksum is wrong.
            case checksum
            /// Its file is missing.
            case fileMissing
            /// The payload cannot be decoded; the text is the reason.
            case undecodable(String)
        }

        /// The database was damaged or missing and has been replaced.
        case recovered(Recovery)
        /// An item was damaged or cannot be decoded. The read was a miss, and the item is removed.
        case discarded(Item, DiscardReason)
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
        /// Unreferenced files could not be removed; tried again later.
        case cleaningFailed(DiskError)
    }
}

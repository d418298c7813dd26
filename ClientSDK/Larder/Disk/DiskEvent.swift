/// Something that happened in the disk tier and that nobody asked for. Cases may be added.
public enum DiskEvent: Sendable {
    /// What a stored thing was.
    public enum Item: Sendable, Hashable {
        /// An entity.
        case entity(EntityKey)
        /// A list.
        case query(QueryKey)
        /// A generic record.
        case record(String)
    }

    /// Why something stored is not given out.
    public enum DiscardReason: Sendable, Hashable {
        /// Its bytes are not those that were stored.
        case checksum
        /// The file that holds its bytes is gone.
        case fileMissing
        /// The payload transform or the caller could not decode it; the text says why.
        case undecodable(String)
    }

    /// The database was damaged or gone and has been replaced.
    case recovered(DiskRecovery)
    /// Something stored was damaged or does not decode any more. It was a miss and is removed.
    case discarded(Item, DiscardReason)
    /// Things were removed to keep the budget.
    case evicted(count: Int)
    /// Things were removed because nobody would want them any more.
    case expired(count: Int)
    /// Blobs that nothing refers to could not be removed. It is tried again.
    case cleaningFailed(DiskError)
}

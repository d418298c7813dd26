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

/// What happened to a database that was damaged or gone, and what was saved from it.
public struct DiskRecovery: Sendable, Hashable {
    /// What was the matter.
    public enum Reason: Sendable, Hashable {
        /// The file is no SQLite database (any more).
        case notADatabase
        /// The file's structure is damaged.
        case corrupt
        /// The file is gone, or it is empty.
        case vanished
    }

    /// What was the matter.
    public let reason: Reason
    /// What SQLite said of it.
    public let description: String
    /// Where the damaged file was put; nil if there was none.
    public let setAside: String?
    /// How many operations of the outbox were saved.
    public let outboxSaved: Int
    /// Whether these are certainly all. If not, some may be lost, and the file that was set aside is all that is left of them.
    public let isOutboxWhole: Bool
    /// How many entities, lists and records were saved.
    public let itemsSaved: Int
    /// Whether change tokens and metadata were kept. Tokens are dropped unless everything that they cover was saved, and
    /// changes must then be read from the start.
    public let areTokensKept: Bool
}

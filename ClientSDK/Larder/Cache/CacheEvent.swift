/// Something that happened in a cache. Cases may be added.
public enum CacheEvent: Sendable {
    /// A read was answered from a tier, by so many bytes as they are stored; 0 where that was not looked at.
    case hit(resource: String, Tier, bytes: Int)
    /// A read found nothing that it could use.
    case miss(resource: String)
    /// A read joined a request that was on its way already.
    case merged(resource: String)
    /// The source gave a value.
    case fetched(resource: String, Duration)
    /// The source said that the stored value is current.
    case revalidated(resource: String, Duration)
    /// The source gave nothing.
    case failed(resource: String, LarderError)
    /// A gate could not be satisfied.
    case gateRefused(resource: String)
    /// The disk tier reports.
    case disk(DiskEvent)
    /// The disk could not be written or read; the cache goes on in memory. What was to be stored is lost when it leaves there.
    case storageFailed(LarderError)
    /// The clock was found to have been set back: everything that was confirmed before has to be confirmed again.
    case clockSetBack

    /// A reader or an observer has something to show for the first time, so long after they asked; nil: from several tiers.
    case firstContent(resource: String, Tier?, Duration)
    /// What the server has confirmed did not have to be sent again: so many bytes, as they are stored.
    case spared(resource: String, bytes: Int)
    /// Entries have left the memory; `reason` is the tier's own word.
    case evicted(reason: String, count: Int, bytes: Int)
    /// An operation of the outbox has moved on; so many are in it now.
    case outbox(OutboxStep, depth: Int)

    /// The outbox begins to send, and holds so many operations of a name that is not registered: they are kept, and neither shown nor
    /// sent. Put the operation into `CacheConfiguration.operations`.
    case unregistered(operation: String, count: Int)
    /// An operation of the outbox has come to something.
    case operation(String, OperationID, OperationEnd)

    /// What an operation has come to.
    public enum OperationEnd: Sendable {
        /// The server has done it.
        case accepted
        /// The server will not do it.
        case refused(LarderError)
        /// It is sent again after that time.
        case postponed(LarderError, Duration)
    }

    /// A step of an operation of the outbox.
    public enum OutboxStep: String, Sendable, Hashable, CaseIterable {
        /// It is durable.
        case enqueued
        /// It has become one with an older one.
        case coalesced
        /// It and an older one have undone each other.
        case cancelled
        /// It is sent.
        case sent
        /// The server has done it.
        case accepted
        /// The server will not do it.
        case rejected
        /// Nobody knows yet whether the server has done it.
        case inDoubt
    }

    /// Where a value was found.
    public enum Tier: String, Sendable, Hashable {
        /// In memory.
        case memory
        /// On disk.
        case disk
        /// At the server.
        case network
    }
}

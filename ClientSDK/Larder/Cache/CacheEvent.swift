/// Something that happened in a cache. Cases may be added.
public enum CacheEvent: Sendable {
    /// A read was answered from a tier.
    case hit(resource: String, Tier)
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

    /// Where a value was found.
    public enum Tier: String, Sendable, Hashable {
        /// In memory.
        case memory
        /// On disk.
        case disk
    }
}

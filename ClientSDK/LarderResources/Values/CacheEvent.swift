public import LarderEvents
public import LarderStorage

/// An event of a cache. Cases may be added.
public enum CacheEvent: Sendable {
    /// A read was answered from a tier. `bytes` is the stored size; 0 if it was not determined.
    case hit(resource: String, CacheTier, bytes: Int)
    /// A read found no usable value.
    case miss(resource: String)
    /// A read joined a request in flight.
    case merged(resource: String)
    /// The source returned a value.
    case fetched(resource: String, Duration)
    /// The source confirmed the stored value, which was not transferred again; `bytes` is its stored size.
    case revalidated(resource: String, Duration, bytes: Int)
    /// The source's reply is in memory only, because it must not be stored (`no-store`). See `HTTPSource.Configuration.correctFields`.
    case notStored(resource: String)
    /// A request failed.
    case failed(resource: String, LarderError)
    /// A gate could not be satisfied.
    case gateRejected(resource: String)
    /// An event of the disk tier.
    case disk(DiskStore.Event)
    /// The disk could not be written or read. The cache continues in memory; values that were not stored are lost when they are
    /// evicted.
    case storageFailed(LarderError)
    /// The clock was set back: all values must be validated again.
    case clockSetBack

    /// A reader or an observer got its first content after this time.
    case firstContent(resource: String, CacheTier, Duration)
    /// Entries were evicted from memory; `reason` is the tier's term.
    case evicted(reason: String, count: Int, bytes: Int)
    /// An operation of the outbox changed its state; `depth` operations are in the outbox.
    case outbox(OutboxStep, depth: Int)

    /// The outbox holds operations of a name that is not registered: they are kept, and neither shown nor sent. Add the operation to
    /// `CacheConfiguration.operations`.
    case unregistered(operation: String, count: Int)
    /// The server has carried out an operation. It leaves `Outbox.entries` after this event, and its caller gets the receipt after it; do not
    /// wait for either in the handler.
    case accepted(operation: String, OperationID)
    /// The server has rejected an operation. A `WriteBehind` is in the entries with its error.
    case rejected(operation: String, OperationID, LarderError)
    /// An operation is sent again after this time.
    case postponed(operation: String, OperationID, LarderError, Duration)
}

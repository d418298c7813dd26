import Synchronization

/// A lock that stops the process with a message if its holder enters it again, instead of a deadlock.
///
/// User functions may run while it is held (`changes`, `replacingIDs`, `coalesce`). A call from the thread that holds it comes from
/// such a function, because nothing suspends while it is held.
struct OutboxLock: ~Copyable, Sendable {
    private let mutex = Mutex(())
    private let owner: ChangeOwner
    private let commitOwner: ChangeOwner
    private let delayed: DelayedEvents

    init(_ core: CacheCore) {
        owner = core.outboxLockOwner
        commitOwner = core.owner
        delayed = core.delayed
    }

    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending ()) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        precondition(
            !owner.isCaller,
            "A function of an operation (changes, replacingIDs, coalesce) must not call the outbox of its own cache. Call it outside of that function."
        )
        // Delivers the events that the store has reported meanwhile, also after an error; within a commit they are delivered after it.
        defer { if !commitOwner.isCaller { delayed.deliver() } }
        return try mutex.withLock { (value: inout sending ()) throws(Failure) -> sending Result in
            owner.begin()
            defer { owner.end() }
            return try body(&value)
        }
    }
}

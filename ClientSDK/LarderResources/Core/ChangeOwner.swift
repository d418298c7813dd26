import Glibc
import Synchronization

/// The thread that carries out a change.
///
/// A user function that it calls must not begin another change, because that would wait for the change in progress. `pthread_t`
/// identifies the thread soundly, because these functions are synchronous and the owner is noted by the thread itself.
/// Safe from any thread.
final class ChangeOwner: Sendable {
    private let thread = Mutex<pthread_t?>(nil)

    /// Records the calling thread as the one that carries out a change.
    func begin() { thread.withLock { $0 = pthread_self() } }

    /// Records that no thread carries out a change.
    func end() { thread.withLock { $0 = nil } }

    /// Whether the calling thread is in the middle of a change.
    var isCaller: Bool { thread.withLock { $0.map { pthread_equal($0, pthread_self()) != 0 } ?? false } }

    /// Stops the process if the calling thread is in the middle of a change: the call would wait for itself.
    ///
    /// - Parameter call: what was called.
    func requireOutside(_ call: StaticString) {
        precondition(
            !isCaller,
            "\(call) was called from a function that runs as a part of a change: a closure of a CacheUpdate.modify or a "
                + "CacheUpdate.edit, the == of a value, a function that merges values or orders a timeline, a codec, a payload transform, "
                + "or a function of an operation. It would wait for that change to end. Call it when LarderCache.update has returned."
        )
    }
}

/// Events that are reported in the middle of a change. They are delivered after it: their handlers may change the cache.
final class DelayedEvents: Sendable {
    private let owners: [ChangeOwner]
    private let events = Mutex<[@Sendable () -> Void]>([])

    init(_ owners: [ChangeOwner]) { self.owners = owners }

    /// Delivers an event, now unless the calling thread is in the middle of a change.
    func tell(_ event: @escaping @Sendable () -> Void) {
        add(event)
        if !owners.contains(where: \.isCaller) { deliver() }
    }

    func add(_ event: @escaping @Sendable () -> Void) { events.withLock { $0.append(event) } }

    /// Delivers the events in order. Called without a lock.
    func deliver() {
        let events = events.withLock { events in
            defer { events = [] }
            return events
        }
        for event in events { event() }
    }
}

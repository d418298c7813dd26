import Glibc
import Synchronization

/// A lock that knows the thread that holds it.
///
/// While it is held, functions of the app may run: those of values, of updates and of operations. One that begins another change would wait for
/// itself. `pthread_t` identifies the thread soundly, because nothing suspends while the lock is held.
/// Safe from any thread.
final class ChangeLock<State: Sendable>: Sendable {
    private let state: Mutex<State>
    /// The holder.
    let thread = Mutex<pthread_t?>(nil)

    init(_ state: State) { self.state = Mutex(state) }

    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        requireOutside("A change")
        return try state.withLock { (state: inout sending State) throws(Failure) -> sending Result in
            thread.withLock { $0 = pthread_self() }
            defer { thread.withLock { $0 = nil } }
            return try body(&state)
        }
    }

    /// Whether the calling thread holds the lock.
    var isHeldByCaller: Bool { thread.withLock { $0.map { pthread_equal($0, pthread_self()) != 0 } ?? false } }

    /// Stops the process if the calling thread holds the lock.
    ///
    /// - Parameter call: what was called.
    func requireOutside(_ call: StaticString) {
        precondition(
            !isHeldByCaller,
            "\(call) was called from a function that runs as a part of a change: a closure of a CacheUpdate.modify or a "
                + "CacheUpdate.edit, the == of a value, a function that merges values or orders a timeline, a codec, a payload transform, "
                + "or a function of an operation. It would wait for that change to end. Call it when LarderCache.update has returned."
        )
    }
}

/// Events that are reported in the middle of a change. They are delivered after it: their handlers may change the cache.
final class DelayedEvents: Sendable {
    private let isWithinChange: @Sendable () -> Bool
    private let events = Mutex<[@Sendable () -> Void]>([])

    /// - Parameter isWithinChange: whether the calling thread is in the middle of a change.
    init(_ isWithinChange: @escaping @Sendable () -> Bool) { self.isWithinChange = isWithinChange }

    /// Delivers an event, now unless the calling thread is in the middle of a change.
    func tell(_ event: @escaping @Sendable () -> Void) {
        add(event)
        if !isWithinChange() { deliver() }
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

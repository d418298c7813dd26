import Glibc
import Synchronization

/// The thread that carries out a change, and the user function that it calls.
///
/// Such a function must not begin another change, because that would wait for the change in progress. `pthread_t`
/// identifies the thread soundly, because these functions are synchronous and the owner is noted by the thread itself.
/// Safe from any thread.
final class ChangeOwner: Sendable {
    /// A user function that runs within a change.
    enum Function: String, Sendable {
        case modify = "the closure of a CacheUpdate.modify"
        case edit = "the closure of a CacheUpdate.edit or CacheUpdate.editQuery"
        case comparison = "the == of a value that is being stored"
        case merge = "a function that merges values or puts items into a timeline"
        case codec = "a codec or a payload transform"
        case operation = "a function of an operation (changes, replacingIDs, coalesce)"
    }

    private struct State {
        var thread: pthread_t?
        var function: Function?
    }

    private let state = Mutex(State())
    private let usual: Function?

    /// - Parameter usual: the user function that a change calls if no other one is recorded.
    init(_ usual: Function? = nil) { self.usual = usual }

    /// Records the calling thread as the one that carries out a change.
    func begin() { state.withLock { $0 = State(thread: pthread_self(), function: usual) } }

    /// Records that no thread carries out a change.
    func end() { state.withLock { $0 = State() } }

    /// Records the user function that the calling thread calls next, within its change.
    func calls(_ function: Function) { state.withLock { $0.function = function } }

    /// Whether the calling thread is in the middle of a change.
    var isCaller: Bool { state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false } }

    /// Stops the process if the calling thread is in the middle of a change: the call would wait for itself.
    ///
    /// - Parameter call: what was called.
    func requireOutside(_ call: StaticString) {
        precondition(!isCaller, message(call))
    }

    private func message(_ call: StaticString) -> String {
        let function = state.withLock { $0.function }?.rawValue ?? "a change that is being carried out"
        return "\(call) was called from \(function). That runs as a part of a change, and the call would wait for "
            + "that change to end. Call it when LarderCache.update has returned."
    }
}

/// Events that a store reports in the middle of a change. They are delivered after it: their handlers may change the cache.
final class DelayedEvents: Sendable {
    private let events = Mutex<[@Sendable () -> Void]>([])

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

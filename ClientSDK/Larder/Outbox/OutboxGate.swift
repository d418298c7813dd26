import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A lock that stops the process with a sentence where its holder enters it again, instead of waiting for itself for ever.
///
/// Functions of the user's may run while it is held (`changes`, `renamed`). It notices a call from the thread that holds it: nothing
/// suspends while it is held, so that thread is in such a function.
struct OutboxGate: ~Copyable, Sendable {
    private let mutex = Mutex(())
    /// The thread that holds it; 0: none.
    private let holder = Atomic<UInt>(0)

    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending ()) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let thread = Self.currentThread
        // Relaxed is enough: a thread sees its own number only where it has written it itself.
        precondition(
            holder.load(ordering: .relaxed) != thread,
            "A function of an operation (changes, renamed) must not call the outbox of its own cache. Call it outside of that function."
        )
        return try mutex.withLock { (value: inout sending ()) throws(Failure) -> sending Result in
            holder.store(thread, ordering: .relaxed)
            defer { holder.store(0, ordering: .relaxed) }
            return try body(&value)
        }
    }

    private static var currentThread: UInt {
        #if canImport(Darwin)
            unsafe UInt(bitPattern: pthread_self())
        #else
            UInt(pthread_self())
        #endif
    }
}

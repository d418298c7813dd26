#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// SIGTERM and SIGINT, waited for instead of handled: nothing runs in a signal handler.
struct StopSignals: Sendable {
    /// Blocks both for this thread and all that it starts.
    init() {
        var set = Self.set
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Returns when one of them has come.
    func wait() async {
        await withCheckedContinuation { continuation in
            // A thread of its own: sigwait blocks, and the pool's threads are not to be blocked.
            let box = unsafe Unmanaged.passRetained(Box { continuation.resume() }).toOpaque()
            #if canImport(Darwin)
                var thread: pthread_t?
            #else
                var thread = pthread_t()
            #endif
            let result = unsafe pthread_create(
                &thread,
                nil,
                { argument in
                    var set = StopSignals.set
                    var signal: Int32 = 0
                    while unsafe sigwait(&set, &signal) != 0 {}
                    #if canImport(Darwin)
                        unsafe Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                    #else
                        if let argument = unsafe argument {
                            unsafe Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
                        }
                    #endif
                    return nil
                },
                box
            )
            precondition(result == 0, "The system gives no thread to wait for signals.")
        }
    }

    private final class Box {
        let body: () -> Void

        init(_ body: @escaping () -> Void) { self.body = body }
    }

    private static var set: sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, SIGTERM)
        unsafe sigaddset(&set, SIGINT)
        return set
    }
}

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Operating-system threads.
enum SystemThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Identifies the calling thread while it runs.
    static var current: UInt {
        #if canImport(Darwin)
            unsafe UInt(bitPattern: pthread_self())
        #else
            UInt(pthread_self())
        #endif
    }

    /// Runs `body` on a new thread, which ends with it.
    static func start(_ body: @escaping @Sendable () -> Void) {
        let box = unsafe Unmanaged.passRetained(Body(body)).toOpaque()
        #if canImport(Darwin)
            var handle: pthread_t?
        #else
            var handle = pthread_t()
        #endif
        let result = unsafe pthread_create(
            &handle,
            nil,
            { argument in
                #if canImport(Darwin)
                    let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                #else
                    guard let argument = unsafe argument else { return nil }
                    let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                #endif
                body.run()
                return nil
            },
            box
        )
        precondition(result == 0, "Starting a thread failed: \(SystemCall.describe(result))")
        #if canImport(Darwin)
            if let handle { pthread_detach(handle) }
        #else
            pthread_detach(handle)
        #endif
    }
}

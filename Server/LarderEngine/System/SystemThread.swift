import Glibc

/// Operating-system threads.
enum SystemThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Identifies the calling thread while it runs.
    static var current: UInt { UInt(pthread_self()) }

    /// Runs `body` on a new thread, which ends with it.
    static func start(_ body: @escaping @Sendable () -> Void) {
        let box = unsafe Unmanaged.passRetained(Body(body)).toOpaque()
        var handle = pthread_t()
        let result = unsafe pthread_create(
            &handle,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                body.run()
                return nil
            },
            box
        )
        precondition(result == 0, "Starting a thread failed: \(SystemCall.describe(result))")
        pthread_detach(handle)
    }
}

import Glibc
import Synchronization

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

/// Lets a thread wait until another one has finished something, once.
///
/// `@unchecked Sendable`: POSIX lets any thread wait for a semaphore and post it, and it is destroyed when nobody refers to it.
@safe final class ThreadSignal: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>
    /// What the other thread has found.
    let isBusy = Atomic<Bool>(false)

    init() {
        unsafe semaphore = .allocate(capacity: 1)
        unsafe semaphore.initialize(to: sem_t())
        let result = unsafe sem_init(semaphore, 0, 0)
        precondition(result == 0, "Making a semaphore failed: \(SystemCall.describe(errno))")
    }

    deinit {
        unsafe sem_destroy(semaphore)
        unsafe semaphore.deallocate()
    }

    /// Blocks until `finish` is called.
    func wait() { while unsafe sem_wait(semaphore) != 0 {} }

    func finish() { unsafe _ = sem_post(semaphore) }
}

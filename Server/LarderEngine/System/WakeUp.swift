#if canImport(Darwin)
    import Darwin
#else
    import CSystem
    import Glibc
#endif

/// Interrupts a loop's wait from another thread: an eventfd on Linux, a pipe elsewhere.
final class WakeUp: Sendable {
    let descriptor: Int32
    private let writer: Int32

    init() throws(EngineError) {
        #if os(Linux)
            descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
            writer = descriptor
            guard descriptor >= 0 else { throw EngineError("Creating an eventfd failed", errno) }
        #else
            var ends: [Int32] = [0, 0]
            guard unsafe pipe(&ends) == 0 else { throw EngineError("Creating a pipe failed", errno) }
            descriptor = ends[0]
            writer = ends[1]
            SystemCall.configure(descriptor)
            SystemCall.configure(writer)
        #endif
    }

    deinit {
        close(descriptor)
        if writer != descriptor { close(writer) }
    }

    func signal() {
        var one: UInt64 = 1
        // A full counter or pipe means that a signal is already pending: a failed write loses nothing.
        _ = unsafe write(writer, &one, MemoryLayout<UInt64>.size)
    }

    func clear() {
        var value: UInt64 = 0
        while unsafe read(descriptor, &value, MemoryLayout<UInt64>.size) > 0, writer != descriptor {}
    }
}
